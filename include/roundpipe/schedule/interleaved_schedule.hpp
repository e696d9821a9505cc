// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Interleaved 1F1B: several stages on each device, forwards and backwards alternate.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// \brief The v N stages loop over the N devices, stage i on device i mod N. Micro-batches go
/// through all loops in groups of N. Device r runs 2 (N - 1 - r) + (v - 1) N forwards, then
/// alternates forwards and backwards, then runs the remaining backwards (interleaved 1F1B,
/// Narayanan et al. 2021, arXiv:2104.04473, section 2.2).
/// On the last device, the backward of the last stage follows each of its forwards, so that the
/// stage can be fused and recomputes nothing; unfused shapes run, too. For v = 1 this is 1F1B with
/// up to twice the forwards ahead, which hides the time of handing over. In flight on device r, all
/// its stages together: at most 2 (N - 1 - r) + (v - 1) N + 1. Bubble of equal stages: (N - 1) / (v
/// M + N - 1). Rounds run one after another.
class InterleavedSchedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return true; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, the number of stages is not a multiple of the
  /// devices, backward stages do not mirror forward ones, or a device has several stages and the
  /// number of micro-batches in a round is not a multiple of the devices (devices would wait for
  /// each other).
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// Devices keep their stages from call to call: 0. \throws Error (invalid_argument) when there
  /// are no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }

 private:
  struct Turn {
    std::size_t loop;
    std::size_t m;
  };

  /// A group of N micro-batches goes through all loops before the next group starts.
  static std::vector<Turn> order(std::size_t loops,
                                 std::size_t group,
                                 std::size_t micro_batches_per_round);
};

static_assert(Schedule<InterleavedSchedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/interleaved_schedule.ipp>
#endif
