// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/schedule_check.hpp>

#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <ostream>
#include <string>

namespace schedule_check_test {

namespace {

using namespace roundpipe;
using test::error_of;

// Stages 0 (forward), 1 (fused) and 2 (backward), on devices 0, 1 and 0.
constexpr ScheduleShape shape{.forward_stages = 1,
                              .backward_stages = 2,
                              .devices = 2,
                              .micro_batches_per_round = 1,
                              .rounds = 1};

Task task(std::size_t stage, TaskKind kind) {
  return {StageId(stage), kind, RoundId(0), MicroBatchId(0)};
}

std::string refusal(DeviceTasks const& tasks) {
  auto const error = error_of([&] { check(shape, tasks); });
  CHECK(error.code() == Errc::invalid_argument);
  return error.message();
}

}  // namespace

TEST_CASE("a schedule that lists every task once, in order, is accepted") {
  CHECK_NOTHROW(check(shape, RoundRobinSchedule{}.tasks(shape)));
  auto const halves = DeviceTasks{{task(0, TaskKind::forward),
                                   task(2, TaskKind::recompute),
                                   task(2, TaskKind::input_gradient),
                                   task(2, TaskKind::weight_gradient)},
                                  {task(1, TaskKind::fused)}};
  CHECK_NOTHROW(check(shape, halves));
}

TEST_CASE("a task that repeats work is refused, also a backward behind one of its halves") {
  auto tasks = RoundRobinSchedule{}.tasks(shape);
  tasks[0].push_back(task(2, TaskKind::input_gradient));
  CHECK(refusal(tasks).find("does again what is done") != std::string::npos);
  tasks = {{task(0, TaskKind::forward),
            task(2, TaskKind::recompute),
            task(2, TaskKind::input_gradient),
            task(2, TaskKind::backward)},
           {task(1, TaskKind::fused)}};
  CHECK(refusal(tasks).find("does again what is done") != std::string::npos);
}

TEST_CASE("a task that is forgotten is named by stage, micro-batch and round") {
  auto tasks = RoundRobinSchedule{}.tasks(shape);
  tasks[1].clear();
  CHECK(refusal(tasks) ==
        "Schedule::tasks breaks rule 1: stage 1 lacks a task for micro-batch 0 of round 0");
  tasks = {
      {task(0, TaskKind::forward), task(2, TaskKind::recompute), task(2, TaskKind::input_gradient)},
      {task(1, TaskKind::fused)}};
  CHECK(refusal(tasks) ==
        "Schedule::tasks breaks rule 1: stage 2 lacks a task for micro-batch 0 of round 0");
}

TEST_CASE("a backward follows its recomputation, on the same device") {
  auto const late = DeviceTasks{
      {task(0, TaskKind::forward), task(2, TaskKind::backward), task(2, TaskKind::recompute)},
      {task(1, TaskKind::fused)}};
  CHECK(refusal(late).find("does not come after") != std::string::npos);
  auto const elsewhere = DeviceTasks{{task(0, TaskKind::forward), task(2, TaskKind::recompute)},
                                     {task(1, TaskKind::fused), task(2, TaskKind::backward)}};
  CHECK(refusal(elsewhere).find("on device 1 does not come after") != std::string::npos);
}

TEST_CASE("tasks of stages, rounds and micro-batches beyond the call are refused") {
  for (auto const& beyond : {Task{StageId(3), TaskKind::backward, RoundId(0), MicroBatchId(0)},
                             Task{StageId(0), TaskKind::forward, RoundId(1), MicroBatchId(0)},
                             Task{StageId(0), TaskKind::forward, RoundId(0), MicroBatchId(1)}}) {
    auto tasks = RoundRobinSchedule{}.tasks(shape);
    tasks[0].push_back(beyond);
    CHECK(refusal(tasks).find("in a call of 3 stages, 1 rounds and 1 micro-batches a round") !=
          std::string::npos);
  }
}

TEST_CASE("a kind of task that a stage does not have is refused") {
  for (auto const kind : {TaskKind::forward, TaskKind::recompute, TaskKind::weight_gradient}) {
    auto tasks = RoundRobinSchedule{}.tasks(shape);
    tasks[1].push_back(task(1, kind));
    CHECK(refusal(tasks).find("which is no task of such a stage") != std::string::npos);
  }
}

TEST_CASE("the next call begins on one of the devices") {
  struct Far : RoundRobinSchedule {
    [[nodiscard]] std::size_t advance(ScheduleShape const& of) const { return of.devices; }
  };
  CHECK(advance_of(RoundRobinSchedule{}, shape) == 1);
  CHECK(error_of([&] { (void)advance_of(Far{}, shape); }).message() ==
        "Schedule::advance breaks rule 2: it is 2 with 2 devices");
}

}  // namespace schedule_check_test
