// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Checks the tests' own oracle of schedules against results computed by hand.
#include <support/task_simulation.hpp>

#include <roundpipe/concepts/schedule.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace task_simulation_test {

namespace {

using namespace roundpipe;
using test::bound_shape;
using test::StageTimes;

Task task(int stage, TaskKind kind, int m = 0) {
  return {StageId(stage), kind, RoundId(0), MicroBatchId(m)};
}

/// Two stages, fused, on two devices; one micro-batch.
ScheduleShape const pair = bound_shape(2, 2, 1, true);

DeviceTasks pair_tasks() {
  return {{task(0, TaskKind::forward), task(2, TaskKind::recompute), task(2, TaskKind::backward)},
          {task(1, TaskKind::fused)}};
}

std::vector<StageTimes> const pair_times{{1, 0, 0}, {2, 0, 4}, {0, 1, 3}};

}  // namespace

TEST_CASE(
    "a micro-batch goes there and back, is handed over twice, and recomputes while it waits") {
  auto const run = test::run_tasks(pair, pair_tasks(), pair_times, 0.5);
  CHECK(run.complete);
  CHECK(run.makespan == 1 + 0.5 + 2 + 4 + 0.5 + 3);
  CHECK(run.busy == std::vector<double>{5, 6});
  CHECK(run.bubble() == doctest::Approx(1 - 11 / 22.0));
  CHECK(run.peak_in_flight == std::vector{1, 1});
  CHECK(run.peak_on_device == std::vector{1, 1});
}

TEST_CASE("a slow device takes longer") {
  auto const run = test::run_tasks(pair, pair_tasks(), pair_times, 0, std::vector<double>{0.5, 1});
  CHECK(run.makespan == 2 + 6 + 6);
}

TEST_CASE("on one device there is no hand-over") {
  auto tasks = pair_tasks();
  tasks[0].insert(tasks[0].begin() + 1, tasks[1].front());
  tasks[1].clear();
  auto const run = test::run_tasks(pair, tasks, pair_times, 100);
  CHECK(run.complete);
  CHECK(run.makespan == 11);
}

TEST_CASE(
    "halves: the previous stage waits only for the first, and flight lasts until the second") {
  // Device 1 runs the weight halves last, while device 0 runs its backwards.
  auto const shape = bound_shape(2, 2, 2, false);
  DeviceTasks tasks(2);
  for (auto const m : {0, 1}) {
    tasks[0].push_back(task(0, TaskKind::forward, m));
    for (auto const kind : {TaskKind::forward, TaskKind::recompute, TaskKind::input_gradient}) {
      tasks[1].push_back(task(kind == TaskKind::forward ? 1 : 2, kind, m));
    }
  }
  for (auto const m : {0, 1}) {
    tasks[0].push_back(task(3, TaskKind::recompute, m));
    tasks[0].push_back(task(3, TaskKind::backward, m));
    tasks[1].push_back(task(2, TaskKind::weight_gradient, m));
  }
  auto const run = test::run_tasks(shape, tasks, test::equal_times(shape, {1, 0, 2}));
  CHECK(run.complete);
  // Device 1: forward from 1, 3; input gradient from 2, 4; weights from 5 to 7. Device 0: 3 to 7.
  CHECK(run.makespan == 7);
  CHECK(run.busy == std::vector<double>{6, 6});
  CHECK(run.peak_in_flight == std::vector{2, 2});
}

TEST_CASE("lists with missing, repeated, wrong or separated tasks are not complete") {
  CHECK(test::is_complete(pair, pair_tasks()));
  auto const bad = [](auto&& change) {
    auto tasks = pair_tasks();
    change(tasks);
    return !test::is_complete(pair, tasks) && !test::run_tasks(pair, tasks, pair_times).complete;
  };
  CHECK(bad([](DeviceTasks& tasks) { tasks[1].clear(); }));
  CHECK(bad([](DeviceTasks& tasks) { tasks[0].push_back(tasks[0].front()); }));
  CHECK(bad([](DeviceTasks& tasks) { tasks[0].erase(tasks[0].begin() + 1); }));
  CHECK(bad([](DeviceTasks& tasks) { tasks[1].front().kind = TaskKind::backward; }));
  CHECK(bad([](DeviceTasks& tasks) { tasks.emplace_back(); }));
  CHECK(bad([](DeviceTasks& tasks) { tasks[1].front().micro_batch = MicroBatchId(1); }));
  CHECK(bad([](DeviceTasks& tasks) {  // the backward runs on another device than its recomputation
    tasks[1].push_back(tasks[0].back());
    tasks[0].pop_back();
  }));
}

TEST_CASE("devices that wait for each other do not complete") {
  auto tasks = pair_tasks();
  std::swap(tasks[0][0], tasks[0][2]);
  CHECK(test::is_complete(pair, tasks));
  CHECK_FALSE(test::run_tasks(pair, tasks, pair_times).complete);
}

}  // namespace task_simulation_test
