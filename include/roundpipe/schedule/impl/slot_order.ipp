// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/schedule/slot_order.hpp>
#include <roundpipe/schedule/task_passes.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<Task> slot_tasks(ScheduleShape const& shape,
                                              StageId stage,
                                              RoundId round) {
  std::vector<Task> tasks;
  auto const kinds = task_kinds(stage_kind(shape, stage));
  for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
    for (auto const kind : kinds) {
      tasks.push_back({stage, kind, round, MicroBatchId(m)});
    }
  }
  return tasks;
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<Slot> order_slots(ScheduleShape const& shape,
                                               DeviceTasks const& tasks) {
  require(tasks.size() == shape.devices,
          Errc::invalid_argument,
          "a schedule needs one task list for each device");
  std::vector<std::vector<Slot>> lists(tasks.size());
  for (std::size_t device = 0; device < tasks.size(); ++device) {
    auto const& list = tasks[device];
    for (std::size_t i = 0; i < list.size();) {
      Slot const slot{list[i].stage, list[i].round, DeviceId(device), {}, {}};
      for (auto const& expected : detail::slot_tasks(shape, slot.stage, slot.round)) {
        if (i == list.size() || list[i] != expected) {
          throw Error(Errc::unsupported,
                      "the schedule does not run stage " + std::to_string(slot.stage.value()) +
                          " of round " + std::to_string(slot.round.value()) +
                          " as one slot: all its micro-batches in order on one device");
        }
        ++i;
      }
      lists[device].push_back(slot);
    }
  }
  std::vector<Slot> order;
  std::vector<std::size_t> next_stage(shape.rounds, 0);
  std::vector<std::size_t> taken(lists.size(), 0);
  std::vector<SlotId> latest(lists.size());
  while (order.size() < shape.stages() * shape.rounds) {
    std::size_t best = lists.size();
    for (std::size_t device = 0; device < lists.size(); ++device) {
      if (taken[device] == lists[device].size()) {
        continue;
      }
      auto const& slot = lists[device][taken[device]];
      if (slot.round.index() >= shape.rounds ||
          slot.stage.index() != next_stage[slot.round.index()]) {
        continue;
      }
      auto const earlier = [](Slot const& a, Slot const& b) {
        return a.round != b.round ? a.round < b.round : a.stage < b.stage;
      };
      if (best == lists.size() || earlier(slot, lists[best][taken[best]])) {
        best = device;
      }
    }
    require(best < lists.size(),
            Errc::invalid_argument,
            "the schedule cannot be run: a slot is missing, or its devices wait for each other");
    auto slot = lists[best][taken[best]++];
    ++next_stage[slot.round.index()];
    slot.previous = latest[best];
    if (slot.previous.valid()) {
      order[slot.previous.index()].next = SlotId(order.size());
    }
    latest[best] = SlotId(order.size());
    order.push_back(slot);
  }
  for (std::size_t device = 0; device < lists.size(); ++device) {
    require(taken[device] == lists[device].size(),
            Errc::invalid_argument,
            "the schedule runs a slot more than once");
  }
  return order;
}

}  // namespace roundpipe
