// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/schedule/slot_order.hpp>
#include <roundpipe/schedule/task_passes.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<Task> slot_tasks(ScheduleShape const& shape,
                                              StageId stage,
                                              RoundId round) {
  Slot const slot{.stage = stage, .round = round};
  return turn_tasks(shape, {&slot, 1});
}

ROUNDPIPE_INLINE std::vector<Task> turn_tasks(ScheduleShape const& shape,
                                              std::span<Slot const> slots) {
  std::vector<Task> tasks;
  for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
    for (auto const& slot : slots) {
      for (auto const kind : task_kinds(stage_kind(shape, slot.stage))) {
        tasks.push_back({slot.stage, kind, slot.round, MicroBatchId(m)});
      }
    }
  }
  return tasks;
}

/// The slot that \p tasks begin with, or the two that take turns, on \p device.
[[nodiscard]] ROUNDPIPE_INLINE std::vector<Slot> first_turn(ScheduleShape const& shape,
                                                            std::span<Task const> tasks,
                                                            DeviceId device) {
  std::vector<Slot> slots;
  auto const add = [&](Task const& task) {
    slots.push_back({.stage = task.stage, .round = task.round, .device = device});
  };
  add(tasks.front());
  auto const& first = slots.front();
  auto const is_other = [&](Task const& task) {
    return task.stage != first.stage || task.round != first.round;
  };
  auto const other = std::find_if(tasks.begin(), tasks.end(), is_other);
  if (shape.overlaps_rounds && other != tasks.end() && other[-1].micro_batch == MicroBatchId(0) &&
      shape.micro_batches_per_round > 1) {
    require(first.stage.index() < shape.forward_stages &&
                other->stage.index() >= shape.forward_stages && other->round < first.round,
            Errc::unsupported,
            "the schedule lets two slots take turns that are not a forward slot and, after it, a "
            "backward slot of an earlier round");
    add(*other);
  }
  return slots;
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<Slot> order_slots(ScheduleShape const& shape,
                                               DeviceTasks const& tasks) {
  require(tasks.size() == shape.devices,
          Errc::invalid_argument,
          "a schedule needs one task list for each device");
  std::vector<std::vector<std::vector<Slot>>> lists(tasks.size());  // by device: what takes turns
  for (std::size_t device = 0; device < tasks.size(); ++device) {
    auto const& list = tasks[device];
    for (std::size_t i = 0; i < list.size();) {
      auto turn = detail::first_turn(shape, std::span(list).subspan(i), DeviceId(device));
      for (auto const& expected : detail::turn_tasks(shape, turn)) {
        if (i == list.size() || list[i] != expected) {
          throw Error(Errc::unsupported,
                      "the schedule does not run stage " + std::to_string(expected.stage.value()) +
                          " of round " + std::to_string(expected.round.value()) +
                          " as one slot: all its micro-batches in order on one device");
        }
        ++i;
      }
      lists[device].push_back(std::move(turn));
    }
  }
  std::vector<Slot> order;
  std::vector<std::size_t> next_stage(shape.rounds, 0);
  std::vector<std::size_t> taken(lists.size(), 0);
  std::vector<std::vector<SlotId>> latest(lists.size());
  while (order.size() < shape.stages() * shape.rounds) {
    std::size_t best = lists.size();
    for (std::size_t device = 0; device < lists.size(); ++device) {
      if (taken[device] == lists[device].size()) {
        continue;
      }
      auto const& turn = lists[device][taken[device]];
      auto const can_run = [&](Slot const& slot) {
        return slot.round.index() < shape.rounds &&
               slot.stage.index() == next_stage[slot.round.index()];
      };
      if (!std::all_of(turn.begin(), turn.end(), can_run)) {
        continue;
      }
      auto const earlier = [](Slot const& a, Slot const& b) {
        return a.round != b.round ? a.round < b.round : a.stage < b.stage;
      };
      if (best == lists.size() || earlier(turn.back(), lists[best][taken[best]].back())) {
        best = device;
      }
    }
    require(best < lists.size(),
            Errc::invalid_argument,
            "the schedule cannot be run: a slot is missing, or its devices wait for each other");
    auto const& before = latest[best];
    std::vector<SlotId> now;
    auto const& turn = lists[best][taken[best]++];
    auto const is_pair = turn.size() > 1;
    for (auto slot : turn) {
      ++next_stage[slot.round.index()];
      SlotId const id(order.size());
      if (!before.empty()) {
        slot.previous = is_pair && now.empty() ? before.front() : before.back();
      }
      if (!now.empty()) {
        slot.partner = now.front();
        order[now.front().index()].partner = id;
      }
      now.push_back(id);
      order.push_back(slot);
    }
    for (auto const id : before) {
      order[id.index()].next = now.front();
    }
    latest[best] = std::move(now);
  }
  for (std::size_t device = 0; device < lists.size(); ++device) {
    require(taken[device] == lists[device].size(),
            Errc::invalid_argument,
            "the schedule runs a slot more than once");
  }
  return order;
}

}  // namespace roundpipe
