// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief GPipe: all forwards of a round, then all backwards.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <cstddef>
#include <utility>

namespace roundpipe {

/// \brief Stage i runs on device i: first the forwards of all micro-batches, then their backwards
/// (GPipe, Huang et al. 2019, section 2.3).
///
/// No stage is fused, as no backward starts before the last forward has ended. Backwards run in the
/// order of the forwards, so that each stage's round is a slot. Devices beyond the number of stages
/// idle. In flight: all M micro-batches. Bubble of P equal stages on P devices:
/// (P - 1) / (M + P - 1). Rounds run one after another.
class GPipeSchedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return false; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, more stages than devices, backward stages that do
  /// not mirror forward ones, or a fused stage.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    detail::ResidentStageTasks tasks(shape);
    detail::refuse_fused(shape, "GPipe runs all forwards before any backward: no stage is fused");
    require(tasks.places() <= shape.devices,
            Errc::invalid_argument,
            "GPipe needs a device for each stage");
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      for (std::size_t place = 0; place < tasks.places(); ++place) {
        for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
          tasks.forward({place, place, round, m});
        }
        for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
          tasks.backward({place, place, round, m});
        }
      }
    }
    return std::move(tasks).take();
  }

  /// Devices keep their stages from call to call. \throws Error (invalid_argument) when there are
  /// no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }
};

static_assert(Schedule<GPipeSchedule>);

}  // namespace roundpipe
