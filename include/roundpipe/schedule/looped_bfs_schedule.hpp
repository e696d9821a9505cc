// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Looped breadth-first schedule: stages are bound to devices and run all micro-batches at
/// once.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief Stage i, and the backward stage at the same place from the end, run on device i mod N,
/// all micro-batches of a round one after another (breadth-first pipeline parallelism, Lamy-Poirier
/// 2023, arXiv:2211.05953).
/// Any number of stages loops over the devices, a multiple of N or not. Stages without layers are
/// normal stages that take no time. The first backward stage may be fused or not. The rounds of a
/// call run one after another. In flight: all M_R micro-batches of each stage. Bubble of v N equal
/// stages and M_R >= N: (N - 1) / (v M_R + N - 1).
/// This is the baseline for \ref RoundRobinSchedule in the same runtime. Its bubbles come from
/// forward stages that take less time than backward stages on the same devices.
class LoopedBfsSchedule {
 public:
  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// Devices keep their stages from call to call: 0. \throws Error (invalid_argument) like \ref
  /// tasks().
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
