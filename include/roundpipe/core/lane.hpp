// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Lanes: the queues in which devices and the host run actions in order.

#include <roundpipe/core/id.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// The purpose of a lane. The streams of a device come first; a backend may map them to priorities
/// and copy engines. The lanes of the host follow.
///
/// A new host lane needs an entry here, a name below, and the work that runs on the lane (see
/// \ref HostLaneWork). The code that executes, verifies, simulates or draws graphs takes any lane.
enum class LaneKind : std::uint8_t {
  compute,
  activation_up,
  activation_down,
  parameter_up,
  gradient_down,
  save_up,         ///< Saves that come back from the host.
  save_down,       ///< Saves that go to the host.
  peer,            ///< Boundaries that go to another device.
  accumulate,      ///< Host: adds downloaded gradients to sums.
  parameter_copy,  ///< Host: P copies.
  optimizer,       ///< Host: gradient norms and optimizer steps.
  reduce,          ///< Host: exchanges gradients with other ranks and adds them to sums.
  gather,          ///< Host: exchanges updated weights with other ranks.
};

namespace detail {

inline constexpr std::array lane_names{"compute",
                                       "activation up",
                                       "activation down",
                                       "parameter up",
                                       "gradient down",
                                       "save up",
                                       "save down",
                                       "peer",
                                       "accumulate",
                                       "parameter copy",
                                       "optimizer",
                                       "reduce",
                                       "gather"};

}  // namespace detail

inline constexpr std::size_t device_lane_count = 8;  ///< The kinds before \c accumulate.
/// The number of the library's host lanes. Work may add kinds after them.
inline constexpr std::size_t host_lane_count = detail::lane_names.size() - device_lane_count;

/// Host lane number \p index.
[[nodiscard]] constexpr LaneKind host_lane(std::size_t index) noexcept {
  return static_cast<LaneKind>(device_lane_count + index);
}
/// The number of a host lane, from 0.
[[nodiscard]] constexpr std::size_t host_lane_index(LaneKind kind) noexcept {
  return static_cast<std::size_t>(kind) - device_lane_count;
}

[[nodiscard]] constexpr char const* name_of(LaneKind kind) noexcept {
  auto const index = static_cast<std::size_t>(kind);
  return index < detail::lane_names.size() ? detail::lane_names[index] : "own host lane";
}

/// Whether lanes of \p kind carry saved activations, to the host or back.
[[nodiscard]] constexpr bool carries_saves(LaneKind kind) noexcept {
  return kind == LaneKind::save_up || kind == LaneKind::save_down;
}

/// A FIFO of actions: one of a device, or one of the host.
struct Lane {
  LaneKind kind = LaneKind::compute;
  DeviceId device;  ///< None for host lanes.

  friend constexpr auto operator<=>(Lane const&, Lane const&) noexcept = default;
  friend constexpr bool operator==(Lane const&, Lane const&) noexcept = default;
};

}  // namespace roundpipe
