// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/round_robin_schedule.hpp>

#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <support/schedule_refusals.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/count.hpp>
#include <range/v3/algorithm/is_sorted.hpp>
#include <range/v3/numeric/accumulate.hpp>
#include <range/v3/view/cartesian_product.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/transform.hpp>

#include <cstddef>
#include <vector>

namespace round_robin_schedule_test {

namespace views = ranges::views;
using roundpipe::deals_round_robin;
using roundpipe::DeviceTasks;
using roundpipe::LoopedBfsSchedule;
using roundpipe::MicroBatchId;
using roundpipe::RoundId;
using roundpipe::RoundRobinSchedule;
using roundpipe::ScheduleShape;
using roundpipe::StageId;
using roundpipe::Task;
using roundpipe::TaskKind;

/// Small numbers of forward stages, backward stages, devices, micro-batches and rounds.
auto shapes() {
  auto const upto = [](std::size_t low, std::size_t high) { return views::closed_iota(low, high); };
  return views::cartesian_product(upto(0, 4), upto(1, 5), upto(1, 5), upto(1, 4), upto(1, 3)) |
         views::transform([](auto const& t) {
           auto const [forward, backward, devices, micro_batches, rounds] = t;
           return ScheduleShape{.forward_stages = forward,
                                .backward_stages = backward,
                                .devices = devices,
                                .micro_batches_per_round = micro_batches,
                                .rounds = rounds};
         });
}

/// The same, with rounds one by one and with rounds that overlap.
auto all_shapes() {
  return views::cartesian_product(shapes(), views::closed_iota(0, 1)) |
         views::transform([](auto const& t) {
           auto [shape, overlaps] = t;
           shape.overlaps_rounds = overlaps == 1;
           return shape;
         });
}

std::vector<TaskKind> kinds_of(ScheduleShape const& shape, std::size_t stage) {
  if (stage < shape.forward_stages) {
    return {TaskKind::forward};
  }
  if (stage == shape.forward_stages) {
    return {TaskKind::fused};
  }
  return {TaskKind::recompute, TaskKind::backward};
}

TEST_CASE("every stage runs every micro-batch of every round exactly once") {
  for (auto const shape : all_shapes()) {
    auto const tasks = RoundRobinSchedule{}.tasks(shape);
    REQUIRE(tasks.size() == shape.devices);
    std::size_t expected = 0;
    for (auto const [stage, round, i] :
         views::cartesian_product(views::iota(std::size_t{0}, shape.stages()),
                                  views::iota(std::size_t{0}, shape.rounds),
                                  views::iota(std::size_t{0}, shape.micro_batches_per_round))) {
      for (auto const kind : kinds_of(shape, stage)) {
        Task const task{StageId(stage), kind, RoundId(round), MicroBatchId(i)};
        REQUIRE(ranges::count(tasks | views::join, task) == 1);
        ++expected;
      }
    }
    auto const sizes = tasks | views::transform([](auto const& list) { return list.size(); });
    CHECK(ranges::accumulate(sizes, std::size_t{0}) == expected);
  }
}

TEST_CASE("slot i runs on device i mod N, its micro-batches consecutive and in order") {
  for (auto const shape : shapes()) {
    auto const tasks = RoundRobinSchedule{}.tasks(shape);
    for (auto const [device, list] : views::enumerate(tasks)) {
      auto const slot = [&](Task const& task) {
        return task.round.index() * shape.stages() + task.stage.index();
      };
      CHECK(ranges::all_of(list,
                           [&](Task const& task) { return slot(task) % shape.devices == device; }));
      // Sorted by slot, then micro-batch, then recompute before backward, with nothing between.
      CHECK(ranges::is_sorted(list, {}, [&](Task const& task) {
        return std::tuple(slot(task), task.micro_batch, task.kind);
      }));
    }
  }
}

TEST_CASE("where rounds overlap, a forward stage runs no earlier than the plan has room for it") {
  for (auto shape : shapes()) {
    shape.overlaps_rounds = true;
    auto const slots = order_slots(shape, RoundRobinSchedule{}.tasks(shape));
    std::vector<std::size_t> next_backward(shape.rounds);  // by round: the next stage to begin
    for (auto const& slot : slots) {
      auto const round = slot.round.index();
      if (slot.stage.index() >= shape.forward_stages) {
        next_backward[round] = slot.stage.index() - shape.forward_stages + 1;
      } else if (round > 0) {
        // All stages before the one that it takes turns with have begun.
        CHECK(shape.first_beside(next_backward[round - 1]) <= slot.stage.index());
      }
      if (slot.partner.valid()) {
        CHECK(slots[slot.partner.index()].device == slot.device);
      }
    }
    std::size_t turns = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto const second = slots[i].partner.valid() && slots[i].partner.index() < i;
      turns += second ? 0 : 1;
    }
    if (shape.micro_batches_per_round > 1) {
      CHECK(RoundRobinSchedule{}.advance(shape) == turns % shape.devices);
    }
  }
}

TEST_CASE("consecutive slots rotate over the devices") {
  ScheduleShape const shape{.forward_stages = 2,
                            .backward_stages = 3,
                            .devices = 3,
                            .micro_batches_per_round = 1,
                            .rounds = 2};
  auto const tasks = RoundRobinSchedule{}.tasks(shape);
  auto const task = [](int stage, TaskKind kind, int round) {
    return Task{StageId(stage), kind, RoundId(round), MicroBatchId(0)};
  };
  // Stages 0 1 2 3 4 0 1 2 3 4 on devices 0 1 2 0 1 2 0 1 2 0.
  CHECK(tasks[0] == std::vector<Task>{task(0, TaskKind::forward, 0),
                                      task(3, TaskKind::recompute, 0),
                                      task(3, TaskKind::backward, 0),
                                      task(1, TaskKind::forward, 1),
                                      task(4, TaskKind::recompute, 1),
                                      task(4, TaskKind::backward, 1)});
  CHECK(tasks[1] == std::vector<Task>{task(1, TaskKind::forward, 0),
                                      task(4, TaskKind::recompute, 0),
                                      task(4, TaskKind::backward, 0),
                                      task(2, TaskKind::fused, 1)});
  CHECK(tasks[2] == std::vector<Task>{task(2, TaskKind::fused, 0),
                                      task(0, TaskKind::forward, 1),
                                      task(3, TaskKind::recompute, 1),
                                      task(3, TaskKind::backward, 1)});
}

TEST_CASE("running the lists in order never waits forever") {
  for (auto const shape : shapes()) {
    REQUIRE(roundpipe::test::stuck(shape, RoundRobinSchedule{}.tasks(shape)) == 0);
  }
}

TEST_CASE("two consecutive calls equal one call with twice the rounds") {
  RoundRobinSchedule const schedule;
  for (auto const shape : shapes()) {
    auto twice = shape;
    twice.rounds *= 2;
    auto const once = schedule.tasks(shape);
    auto const shift = schedule.advance(shape);
    CHECK(shift == shape.stages() * shape.rounds % shape.devices);
    CHECK(schedule.advance(twice) == 2 * shift % shape.devices);
    DeviceTasks both = once;
    for (auto const [device, list] : views::enumerate(once)) {
      for (auto task : list) {
        task.round = RoundId(task.round.index() + shape.rounds);
        both[(device + shift) % shape.devices].push_back(task);
      }
    }
    REQUIRE(both == schedule.tasks(twice));
  }
}

TEST_CASE("the first slot of the next call follows the device of the last slot") {
  for (auto const shape : shapes()) {
    auto const last = (shape.stages() * shape.rounds - 1) % shape.devices;
    CHECK(RoundRobinSchedule{}.advance(shape) == (last + 1) % shape.devices);
  }
}

TEST_CASE("without backward stages, the schedule deals forward tasks only") {
  ScheduleShape const shape{.forward_stages = 3,
                            .backward_stages = 0,
                            .devices = 2,
                            .micro_batches_per_round = 2,
                            .rounds = 1};
  auto const tasks = RoundRobinSchedule{}.tasks(shape);
  CHECK(tasks[0].size() == 4);
  CHECK(tasks[1].size() == 2);
  CHECK(ranges::all_of(tasks | views::join,
                       [](Task const& task) { return task.kind == TaskKind::forward; }));
}

TEST_CASE("a model of one stage is one fused slot in each round") {
  ScheduleShape const shape{.forward_stages = 0,
                            .backward_stages = 1,
                            .devices = 4,
                            .micro_batches_per_round = 3,
                            .rounds = 6};
  auto const tasks = RoundRobinSchedule{}.tasks(shape);
  CHECK(tasks[0].size() == 6);
  CHECK(tasks[3].size() == 3);
  CHECK(RoundRobinSchedule{}.advance(shape) == 2);
}

TEST_CASE("empty shapes are refused") {
  ScheduleShape const good{.forward_stages = 1,
                           .backward_stages = 2,
                           .devices = 2,
                           .micro_batches_per_round = 2,
                           .rounds = 2};
  roundpipe::test::check_empty_shapes_are_refused(RoundRobinSchedule{}, good);
}

TEST_CASE("with k = S R - 1, equal stages of t take (floor(k / N) M_R + k mod N + M_R) t") {
  namespace test = roundpipe::test;
  for (auto const shape : shapes()) {
    auto const n = shape.devices;
    auto const m = shape.micro_batches_per_round;
    if (shape.stages() < n || m < n) {
      continue;
    }
    auto const t = 3.0;
    std::vector<test::StageTimes> times(shape.stages(), {t, 0, t});
    times[shape.forward_stages] = {1, 0, t - 1};  // fused
    auto const run = test::run_tasks(shape, RoundRobinSchedule{}.tasks(shape), times);
    auto const k = shape.stages() * shape.rounds - 1;
    REQUIRE(run.complete);
    auto const steps = k / n * m + k % n + m;
    CHECK(run.makespan == static_cast<double>(steps) * t);
  }
}

TEST_CASE("without a fused stage, the first backward stage recomputes like the others") {
  namespace test = roundpipe::test;
  for (auto shape : shapes()) {
    shape.fused = false;
    std::vector<test::StageTimes> const times(shape.stages(), {1, 1, 2});
    REQUIRE(test::run_tasks(shape, RoundRobinSchedule{}.tasks(shape), times, 0.5).complete);
  }
}

TEST_CASE("who deals slots round robin says so, unless they take turns") {
  /// As many devices on from call to call whatever the call.
  struct Fixed : RoundRobinSchedule {
    static std::size_t advance(ScheduleShape const&) { return 0; }
  };
  for (auto shape : shapes()) {
    CHECK(deals_round_robin(RoundRobinSchedule{}, shape));
    CHECK(deals_round_robin(Fixed{}, shape) == (RoundRobinSchedule{}.advance(shape) == 0));
    shape.overlaps_rounds = true;
    CHECK_FALSE(deals_round_robin(RoundRobinSchedule{}, shape));
  }
  CHECK_FALSE(deals_round_robin(LoopedBfsSchedule{},
                                {.forward_stages = 3, .backward_stages = 5, .devices = 4}));
}

}  // namespace round_robin_schedule_test
