// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks RoundRobinSchedule::tasks(ScheduleShape const& shape) const {
  check(shape);
  DeviceTasks result(shape.devices);
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    for (std::size_t stage = 0; stage < shape.stages(); ++stage) {
      auto& device = result[(round * shape.stages() + stage) % shape.devices];
      auto const slot = detail::slot_tasks(shape, StageId(stage), RoundId(round));
      device.insert(device.end(), slot.begin(), slot.end());
    }
  }
  return result;
}

}  // namespace roundpipe
