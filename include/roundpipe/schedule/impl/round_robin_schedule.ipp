// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks RoundRobinSchedule::tasks(ScheduleShape const& shape) const {
  check(shape);
  DeviceTasks result(shape.devices);
  std::size_t turn = 0;
  for (auto const& slots : turns(shape)) {
    auto& device = result[turn++ % shape.devices];
    auto const tasks = detail::turn_tasks(shape, slots);
    device.insert(device.end(), tasks.begin(), tasks.end());
  }
  return result;
}

ROUNDPIPE_INLINE std::size_t RoundRobinSchedule::advance(ScheduleShape const& shape) const {
  check(shape);
  return turns(shape).size() % shape.devices;
}

ROUNDPIPE_INLINE std::vector<std::vector<Slot>> RoundRobinSchedule::turns(
    ScheduleShape const& shape) {
  std::vector<std::vector<Slot>> turns;
  auto const slot = [](std::size_t stage, std::size_t round) {
    return Slot{.stage = StageId(stage), .round = RoundId(round)};
  };
  auto const overlaps = shape.overlaps_rounds && shape.backward_stages > 0;
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    for (std::size_t i = 0; i < shape.forward_stages && (round == 0 || !overlaps); ++i) {
      turns.push_back({slot(i, round)});
    }
    for (std::size_t j = 0; j < shape.backward_stages; ++j) {
      auto const backward = slot(shape.forward_stages + j, round);
      auto const is_alone = !overlaps || round + 1 == shape.rounds;
      auto const first = is_alone ? 0 : shape.first_beside(j);
      auto const end = is_alone ? 0 : shape.first_beside(j + 1);
      for (auto i = first; i < end; ++i) {
        turns.push_back({slot(i, round + 1)});
      }
      if (first < end) {
        turns.back().push_back(backward);
      } else {
        turns.push_back({backward});
      }
    }
  }
  return turns;
}

}  // namespace roundpipe
