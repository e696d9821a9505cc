// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/looped_bfs_schedule.hpp>

#include <support/bound_schedules.hpp>
#include <support/schedule_refusals.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>
#include <range/v3/algorithm/count.hpp>
#include <range/v3/algorithm/is_sorted.hpp>
#include <range/v3/view/cartesian_product.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/transform.hpp>

#include <cstddef>
#include <vector>

namespace looped_bfs_schedule_test {

namespace views = ranges::views;
using roundpipe::DeviceTasks;
using roundpipe::LoopedBfsSchedule;
using roundpipe::MicroBatchId;
using roundpipe::RoundId;
using roundpipe::ScheduleShape;
using roundpipe::StageId;
using roundpipe::Task;
using roundpipe::TaskKind;

/// Small numbers of forward stages, backward stages, devices, micro-batches and rounds.
auto shapes() {
  auto const upto = [](std::size_t low, std::size_t high) { return views::closed_iota(low, high); };
  return views::cartesian_product(upto(0, 4), upto(1, 5), upto(1, 5), upto(1, 3), upto(1, 3)) |
         views::transform([](auto const& t) {
           auto const [forward, backward, devices, micro_batches, rounds] = t;
           return ScheduleShape{.forward_stages = forward,
                                .backward_stages = backward,
                                .devices = devices,
                                .micro_batches_per_round = micro_batches,
                                .rounds = rounds};
         });
}

TEST_CASE("every stage runs every micro-batch of every round exactly once") {
  for (auto const shape : shapes()) {
    auto const tasks = LoopedBfsSchedule{}.tasks(shape);
    REQUIRE(tasks.size() == shape.devices);
    std::size_t expected = 0;
    for (auto const [stage, round, i] :
         views::cartesian_product(views::iota(std::size_t{0}, shape.stages()),
                                  views::iota(std::size_t{0}, shape.rounds),
                                  views::iota(std::size_t{0}, shape.micro_batches_per_round))) {
      auto const kinds = stage < shape.forward_stages ? std::vector{TaskKind::forward}
                         : stage == shape.forward_stages
                             ? std::vector{TaskKind::fused}
                             : std::vector{TaskKind::recompute, TaskKind::backward};
      for (auto const kind : kinds) {
        Task const task{StageId(stage), kind, RoundId(round), MicroBatchId(i)};
        REQUIRE(ranges::count(tasks | views::join, task) == 1);
        ++expected;
      }
    }
    std::size_t dealt = 0;
    for (auto const& list : tasks) {
      dealt += list.size();
    }
    CHECK(dealt == expected);
  }
}

TEST_CASE("a stage and its mirror stage stay on one device, in every round") {
  for (auto const shape : shapes()) {
    auto const tasks = LoopedBfsSchedule{}.tasks(shape);
    for (auto const [device, list] : views::enumerate(tasks)) {
      for (auto const& task : list) {
        auto const stage = task.stage.index();
        auto const place = stage < shape.forward_stages ? stage : shape.stages() - 1 - stage;
        CHECK(place % shape.devices == device);
      }
    }
    CHECK(LoopedBfsSchedule{}.advance(shape) == 0);
  }
}

TEST_CASE("a device runs all micro-batches of a stage together, stages in order") {
  for (auto const shape : shapes()) {
    for (auto const& list : LoopedBfsSchedule{}.tasks(shape)) {
      CHECK(ranges::is_sorted(list, {}, [](Task const& task) {
        return std::tuple(task.round, task.stage, task.micro_batch, task.kind);
      }));
    }
  }
}

TEST_CASE("two devices loop over the forward stages and back over the backward stages") {
  ScheduleShape const shape{.forward_stages = 3,
                            .backward_stages = 4,
                            .devices = 2,
                            .micro_batches_per_round = 1,
                            .rounds = 1};
  auto const tasks = LoopedBfsSchedule{}.tasks(shape);
  auto const task = [](int stage, TaskKind kind) {
    return Task{StageId(stage), kind, RoundId(0), MicroBatchId(0)};
  };
  // Layers 0 1 2 3, one in each stage: forward on devices 0 1 0, the fused stage 3 on 1, backward
  // on 0 1 0.
  CHECK(tasks[0] == std::vector<Task>{task(0, TaskKind::forward),
                                      task(2, TaskKind::forward),
                                      task(4, TaskKind::recompute),
                                      task(4, TaskKind::backward),
                                      task(6, TaskKind::recompute),
                                      task(6, TaskKind::backward)});
  CHECK(tasks[1] == std::vector<Task>{task(1, TaskKind::forward),
                                      task(3, TaskKind::fused),
                                      task(5, TaskKind::recompute),
                                      task(5, TaskKind::backward)});
}

TEST_CASE("running the lists in order never waits forever") {
  for (auto const shape : shapes()) {
    REQUIRE(roundpipe::test::stuck(shape, LoopedBfsSchedule{}.tasks(shape)) == 0);
  }
}

TEST_CASE("empty shapes are refused") {
  ScheduleShape const good{.forward_stages = 1,
                           .backward_stages = 2,
                           .devices = 2,
                           .micro_batches_per_round = 2,
                           .rounds = 2};
  roundpipe::test::check_empty_shapes_are_refused(LoopedBfsSchedule{}, good);
}

TEST_CASE("fused or not, with any number of stages: everything runs once and in order") {
  namespace test = roundpipe::test;
  test::check_grid(LoopedBfsSchedule{}, test::bound_shapes());
}

TEST_CASE("without a fused stage, the backwards of the last stage follow all its forwards") {
  auto const shape = roundpipe::test::bound_shape(2, 2, 2, false);
  auto const task = [](int stage, TaskKind kind, int m) {
    return Task{StageId(stage), kind, RoundId(0), MicroBatchId(m)};
  };
  CHECK(LoopedBfsSchedule{}.tasks(shape)[1] == std::vector<Task>{task(1, TaskKind::forward, 0),
                                                                 task(1, TaskKind::forward, 1),
                                                                 task(2, TaskKind::recompute, 0),
                                                                 task(2, TaskKind::backward, 0),
                                                                 task(2, TaskKind::recompute, 1),
                                                                 task(2, TaskKind::backward, 1)});
}

TEST_CASE("the bubble of v N equal stages is (N - 1) / (v M + N - 1)") {
  namespace test = roundpipe::test;
  auto const upto = [](std::size_t low, std::size_t high) { return views::closed_iota(low, high); };
  for (auto const [n, v, extra] : views::cartesian_product(upto(1, 5), upto(1, 4), upto(0, 4))) {
    auto const m = n + extra;
    for (auto const fused : {false, true}) {
      auto const shape = test::bound_shape(n * v, n, m, fused);
      auto const run = test::run_equal(LoopedBfsSchedule{}, shape, {1, 0, 2});
      auto const bubble = static_cast<double>(n - 1) / static_cast<double>(v * m + n - 1);
      CHECK(run.bubble() == doctest::Approx(bubble));
    }
  }
}

TEST_CASE("empty stages in the last loop cost nothing but their hand-over") {
  namespace test = roundpipe::test;
  // 5 stages on 3 devices, then 6 stages, the last without layers.
  auto const run = [](std::size_t places) {
    auto const shape = test::bound_shape(places, 3, 4, false);
    auto times = test::equal_times(shape, {1, 1, 2});
    if (places == 6) {
      times[5] = times[6] = {};
    }
    return test::run_tasks(shape, LoopedBfsSchedule{}.tasks(shape), times);
  };
  CHECK(run(6).complete);
  CHECK(run(6).makespan == run(5).makespan);
  CHECK(run(6).busy == run(5).busy);
}

}  // namespace looped_bfs_schedule_test
