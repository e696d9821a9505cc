// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/schedule/schedule_check.hpp>
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
  std::vector<Task> of_one;  // micro-batch
  for (auto const& slot : slots) {
    for (auto const kind : task_kinds(stage_kind(shape, slot.stage))) {
      of_one.push_back({slot.stage, kind, slot.round, {}});
    }
  }
  std::vector<Task> tasks;
  tasks.reserve(of_one.size() * shape.micro_batches_per_round);
  for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
    for (auto task : of_one) {
      task.micro_batch = MicroBatchId(m);
      tasks.push_back(task);
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
    if (!(first.stage.index() < shape.forward_stages &&
          other->stage.index() >= shape.forward_stages && other->round < first.round)) {
      throw broken_rule("Schedule::tasks",
                        4,
                        to_string(tasks.front()) + " takes turns with " + to_string(*other),
                        Errc::unsupported);
    }
    add(*other);
  }
  return slots;
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<Slot> order_slots(ScheduleShape const& shape,
                                               DeviceTasks const& tasks) {
  check(shape, tasks);
  std::vector<std::vector<std::vector<Slot>>> lists(tasks.size());  // by device: what takes turns
  for (std::size_t device = 0; device < tasks.size(); ++device) {
    auto const& list = tasks[device];
    for (std::size_t i = 0; i < list.size();) {
      auto turn = detail::first_turn(shape, std::span(list).subspan(i), DeviceId(device));
      for (auto const& expected : detail::turn_tasks(shape, turn)) {
        if (i == list.size() || list[i] != expected) {
          throw broken_rule("Schedule::tasks",
                            4,
                            to_string(expected) + " is due on device " + std::to_string(device) +
                                ", not " +
                                (i == list.size() ? "the list's end" : to_string(list[i])),
                            Errc::unsupported);
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
        return slot.stage.index() == next_stage[slot.round.index()];
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
    if (best == lists.size()) {
      std::size_t waiting = 0;
      while (taken[waiting] == lists[waiting].size()) {
        ++waiting;
      }
      auto const& slot = lists[waiting][taken[waiting]].front();
      throw broken_rule("Schedule::tasks",
                        3,
                        "device " + std::to_string(waiting) + " waits forever with stage " +
                            std::to_string(slot.stage.value()) + " of round " +
                            std::to_string(slot.round.value()));
    }
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
  return order;
}

}  // namespace roundpipe
