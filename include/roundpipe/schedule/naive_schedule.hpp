// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Naive model parallelism: one micro-batch in the whole pipeline at a time.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief A micro-batch goes through all stages, forward and backward, before the next one starts
/// (the baseline that pipelines improve on: GPipe, Huang et al. 2019, figure 2b).
/// Stage i and the backward stage of its layers run on device i mod N. The last stage may be fused
/// or not: its backward follows its forward at once in either case.
/// In flight: 1 micro-batch. One device works at a time, so the bubble is (N - 1) / N for any stage
/// times, except that recomputation runs while a device waits. A forward-only call has no backward
/// that holds back the next micro-batch: its micro-batches follow each other as in other schedules.
/// Rounds run one after another.
class NaiveSchedule {
 public:
  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, or backward stages do not mirror forward ones.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// Devices keep their stages from call to call: 0. \throws Error (invalid_argument) when there
  /// are no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }
};

static_assert(Schedule<NaiveSchedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/naive_schedule.ipp>
#endif
