// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What an executor has to know of a lane of the host.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/lane.hpp>

#include <cstddef>
#include <span>

namespace roundpipe {

/// How an executor treats a lane of the host. The work that runs on the lane says so.
struct HostLaneTraits {
  LaneKind kind = LaneKind::optimizer;
  /// Whether the work may go on after an error, to finish what it has begun: device copies that
  /// wait for the lane are then held until its thread has ended.
  bool outlives_errors = false;
  /// Whether the lane's thread is the first of the threads that share its work, and so is pinned to
  /// the first of their CPUs; else it may run on any of them.
  bool leads_threads = false;
};

/// Where \p kind stands in \p lanes.
/// \throws Error (unsupported) when it does not.
[[nodiscard]] std::size_t position_of(LaneKind kind, std::span<HostLaneTraits const> lanes);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/execute/impl/host_lane_traits.ipp>
#endif
