// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/gpipe_schedule.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks GPipeSchedule::tasks(ScheduleShape const& shape) const {
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

}  // namespace roundpipe
