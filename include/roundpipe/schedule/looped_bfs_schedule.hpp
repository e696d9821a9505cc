// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Looped breadth-first schedule: stages bound to devices, all micro-batches of one at once.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief Stage i, and the backward stage that holds the same place from the end, run on device
/// i mod N, all micro-batches of a round one after another (breadth-first pipeline parallelism,
/// Lamy-Poirier 2023, arXiv:2211.05953).
///
/// Any number of stages loops over the devices, a multiple of N or not; stages without layers are
/// stages like others that take no time. The first backward stage may be fused or not. The rounds
/// of a call run one after another. In flight: all M_R micro-batches of each stage. Bubble of v N
/// equal stages and M_R >= N: (N - 1) / (v M_R + N - 1).
///
/// The baseline that \ref RoundRobinSchedule is compared with in the same runtime: its bubbles come
/// from forward stages that take less time than backward ones on the same devices.
class LoopedBfsSchedule {
 public:
  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// Devices keep their stages from call to call. \throws Error (invalid_argument) as \ref tasks().
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }
};

static_assert(Schedule<LoopedBfsSchedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/looped_bfs_schedule.ipp>
#endif
