// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/schedule/slot_order.hpp>

#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace slot_order_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("slots come in the order of rounds and stages, with their neighbours on the device") {
  ScheduleShape const shape{.forward_stages = 2,
                            .backward_stages = 3,
                            .devices = 2,
                            .micro_batches_per_round = 3,
                            .rounds = 2};
  auto const slots = order_slots(shape, RoundRobinSchedule{}.tasks(shape));
  REQUIRE(slots.size() == 10);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    CHECK(slots[i].round.index() == i / 5);
    CHECK(slots[i].stage.index() == i % 5);
    CHECK(slots[i].device.index() == i % 2);
    CHECK(slots[i].previous == (i < 2 ? SlotId::none() : SlotId(i - 2)));
    CHECK(slots[i].next == (i + 2 < 10 ? SlotId(i + 2) : SlotId::none()));
  }
}

TEST_CASE("where rounds overlap, a forward slot and a backward slot take turns") {
  ScheduleShape const shape{.forward_stages = 2,
                            .backward_stages = 3,
                            .devices = 1,
                            .micro_batches_per_round = 2,
                            .rounds = 2,
                            .overlaps_rounds = true};
  auto const tasks = RoundRobinSchedule{}.tasks(shape);
  auto const slots = order_slots(shape, tasks);
  struct Expected {
    int stage, round, previous, next, partner;
  };
  // Of round 1, the forward stages run beside backward stages 3 and 4 of round 0.
  Expected const expected[] = {{0, 0, -1, 1, -1},
                               {1, 0, 0, 2, -1},
                               {2, 0, 1, 3, -1},
                               {0, 1, 2, 5, 4},
                               {3, 0, 2, 5, 3},
                               {1, 1, 3, 7, 6},
                               {4, 0, 4, 7, 5},
                               {2, 1, 6, 8, -1},
                               {3, 1, 7, 9, -1},
                               {4, 1, 8, -1, -1}};
  REQUIRE(slots.size() == std::size(expected));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    CAPTURE(i);
    auto const number = [](SlotId id) { return id.valid() ? static_cast<int>(id.index()) : -1; };
    CHECK(static_cast<int>(slots[i].stage.index()) == expected[i].stage);
    CHECK(static_cast<int>(slots[i].round.index()) == expected[i].round);
    CHECK(number(slots[i].previous) == expected[i].previous);
    CHECK(number(slots[i].next) == expected[i].next);
    CHECK(number(slots[i].partner) == expected[i].partner);
  }
  auto one_by_one = shape;
  one_by_one.overlaps_rounds = false;
  CHECK(error_of([&] { return order_slots(one_by_one, tasks); }).code() == Errc::unsupported);
  // The backward slot first, or two backward slots.
  auto other = tasks;
  auto const begin = std::find_if(
      other[0].begin(), other[0].end(), [](Task const& task) { return task.round == RoundId(1); });
  std::rotate(begin, begin + 1, begin + 3);  // micro-batch 0: recompute, backward, forward
  std::rotate(begin + 3, begin + 4, begin + 6);
  CHECK(error_of([&] { return order_slots(shape, other); }).code() == Errc::unsupported);
}

TEST_CASE("stages bound to devices are ordered so that they can run") {
  ScheduleShape const shape{.forward_stages = 2,
                            .backward_stages = 3,
                            .devices = 2,
                            .micro_batches_per_round = 1,
                            .rounds = 2};
  auto const tasks = LoopedBfs{}.tasks(shape);
  auto const slots = order_slots(shape, tasks);
  REQUIRE(slots.size() == shape.stages() * shape.rounds);
  std::vector<std::size_t> next_stage(shape.rounds, 0);
  std::vector<std::vector<Task>> ordered(shape.devices);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto const& slot = slots[i];
    CHECK(slot.stage.index() == next_stage.at(slot.round.index())++);
    CHECK((!slot.previous.valid() || slots[slot.previous.index()].next == SlotId(i)));
    auto& list = ordered.at(slot.device.index());
    CHECK(slot.previous.valid() == !list.empty());
    auto const own = detail::slot_tasks(shape, slot.stage, slot.round);
    list.insert(list.end(), own.begin(), own.end());
  }
  CHECK(ordered == tasks);  // and on each device in the order of its list
}

TEST_CASE("schedules that cannot be run are refused") {
  ScheduleShape const shape{.forward_stages = 1,
                            .backward_stages = 1,
                            .devices = 2,
                            .micro_batches_per_round = 2,
                            .rounds = 1};
  auto const good = RoundRobinSchedule{}.tasks(shape);
  auto const code = [&](DeviceTasks const& tasks) {
    return error_of([&] { return order_slots(shape, tasks); }).code();
  };
  auto tasks = good;
  tasks.pop_back();
  CHECK(code(tasks) == Errc::invalid_argument);
  tasks = good;
  tasks[1].clear();
  CHECK(code(tasks) == Errc::invalid_argument);
  tasks = good;
  tasks[0].pop_back();
  CHECK(code(tasks) == Errc::invalid_argument);
  tasks = good;
  std::swap(tasks[0][0], tasks[0][1]);
  CHECK(code(tasks) == Errc::unsupported);
  tasks = good;
  tasks[0].insert(tasks[0].end(), good[0].begin(), good[0].end());
  CHECK(code(tasks) == Errc::invalid_argument);
}

TEST_CASE("devices that wait for each other are refused") {
  ScheduleShape const shape{.forward_stages = 2,
                            .backward_stages = 1,
                            .devices = 1,
                            .micro_batches_per_round = 1,
                            .rounds = 1};
  auto tasks = RoundRobinSchedule{}.tasks(shape);
  std::swap(tasks[0][0], tasks[0][1]);
  CHECK(error_of([&] { return order_slots(shape, tasks); }).code() == Errc::invalid_argument);
}

}  // namespace slot_order_test
