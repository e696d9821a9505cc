// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks OneFOneBSchedule::tasks(ScheduleShape const& shape) const {
  detail::ResidentStageTasks tasks(shape);
  require(tasks.places() <= shape.devices,
          Errc::invalid_argument,
          "1F1B needs a device for each stage");
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    for (std::size_t place = 0; place < tasks.places(); ++place) {
      auto const warm_up = std::min(tasks.places() - 1 - place, shape.micro_batches_per_round);
      for (std::size_t m = 0; m < shape.micro_batches_per_round + warm_up; ++m) {
        if (m < shape.micro_batches_per_round) {
          tasks.forward({place, place, round, m});
        }
        if (m >= warm_up) {
          tasks.backward({place, place, round, m - warm_up});
        }
      }
    }
  }
  return std::move(tasks).take();
}

}  // namespace roundpipe
