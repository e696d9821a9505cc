// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The time of simulated iterations, and the idle time of devices by cause.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <cstddef>

namespace roundpipe {

/// Busy and idle time of a simulation's devices. With more than two iterations both cover the
/// steady state: for each device, from its finish of the second iteration to its finish of the
/// last. Otherwise they cover the makespan.
struct SimulatedBubbles {
  std::size_t iterations = 0;  ///< The simulated iterations.
  double makespan_s = 0;       ///< From the start to the end of all compute.
  double iteration_s = 0;      ///< The mean time of one iteration.
  double busy_s = 0;           ///< Of all devices together.
  Bubbles bubbles;             ///< All idle time of all devices.

  /// The share of idle time, 0 to 1.
  [[nodiscard]] double ratio() const noexcept {
    auto const idle_s = bubbles.total();
    return idle_s > 0 ? idle_s / (idle_s + busy_s) : 0;
  }
};

/// Accounts for all of \p simulation.
[[nodiscard]] SimulatedBubbles account_bubbles(Simulation const& simulation);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/simulated_bubbles.ipp>
#endif
