// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/schedule/naive_schedule.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks NaiveSchedule::tasks(ScheduleShape const& shape) const {
  detail::ResidentStageTasks tasks(shape);
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
      for (std::size_t place = 0; place < tasks.places(); ++place) {
        tasks.forward({place % shape.devices, place, round, m});
      }
      for (auto place = tasks.places(); place-- > 0;) {
        tasks.backward({place % shape.devices, place, round, m});
      }
    }
  }
  return std::move(tasks).take();
}

}  // namespace roundpipe
