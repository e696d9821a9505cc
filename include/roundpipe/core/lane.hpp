// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Lanes: the queues in which the actions of devices and of the host run in order.

#include <roundpipe/core/id.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// What a stream of a device is for; a backend may map kinds to priorities and copy engines.
enum class LaneKind : std::uint8_t {
  compute,
  activation_up,
  activation_down,
  parameter_up,
  gradient_down,
  accumulate,      ///< On the host: sums downloaded gradients.
  parameter_copy,  ///< On the host: P copies.
  optimizer,       ///< On the host: gradient norms, optimizer steps.
};

inline constexpr std::size_t device_lane_count = 5;  ///< The kinds before \c accumulate.
inline constexpr std::size_t host_lane_count = 3;

[[nodiscard]] constexpr char const* name_of(LaneKind kind) noexcept {
  constexpr char const* names[] = {"compute",
                                   "activation up",
                                   "activation down",
                                   "parameter up",
                                   "gradient down",
                                   "accumulate",
                                   "parameter copy",
                                   "optimizer"};
  return names[static_cast<std::size_t>(kind)];
}

/// A FIFO of actions: one of a device's five, or one of the host's three.
struct Lane {
  LaneKind kind = LaneKind::compute;
  DeviceId device;  ///< None for the host's lanes.

  friend constexpr auto operator<=>(Lane const&, Lane const&) noexcept = default;
  friend constexpr bool operator==(Lane const&, Lane const&) noexcept = default;
};

}  // namespace roundpipe
