// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks LoopedBfsSchedule::tasks(ScheduleShape const& shape) const {
  check(shape);
  DeviceTasks tasks(shape.devices);
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    for (std::size_t stage = 0; stage < shape.stages(); ++stage) {
      auto const place = stage < shape.forward_stages ? stage : shape.stages() - 1 - stage;
      auto const slot = detail::slot_tasks(shape, StageId(stage), RoundId(round));
      auto& list = tasks[place % shape.devices];
      list.insert(list.end(), slot.begin(), slot.end());
    }
  }
  return tasks;
}

}  // namespace roundpipe
