// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Lanes: the queues in which devices and the host run actions in order.

#include <roundpipe/core/id.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// The purpose of a stream. A backend may map kinds to priorities and copy engines.
enum class LaneKind : std::uint8_t {
  compute,
  activation_up,
  activation_down,
  parameter_up,
  gradient_down,
  accumulate,      ///< Host: adds downloaded gradients to sums.
  parameter_copy,  ///< Host: P copies.
  optimizer,       ///< Host: gradient norms and optimizer steps.
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

/// A FIFO of actions: one of the five of a device, or one of the three of the host.
struct Lane {
  LaneKind kind = LaneKind::compute;
  DeviceId device;  ///< None for host lanes.

  friend constexpr auto operator<=>(Lane const&, Lane const&) noexcept = default;
  friend constexpr bool operator==(Lane const&, Lane const&) noexcept = default;
};

}  // namespace roundpipe
