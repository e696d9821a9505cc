// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long simulated iterations take, and how much of it devices idle, by cause.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <cstddef>

namespace roundpipe {

/// Busy and idle time of a simulation's devices. With more than two iterations both are those of
/// the steady state: each device's from its finish of the second iteration to its finish of the
/// last one. Else they are those of the makespan.
struct SimulatedBubbles {
  std::size_t iterations = 0;  ///< That were simulated.
  double makespan_s = 0;       ///< From the start to the end of all compute.
  double iteration_s = 0;      ///< Of one iteration, on the average.
  double busy_s = 0;           ///< Of all devices together.
  Bubbles bubbles;             ///< Likewise: all idle time.

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
