// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <support/bound_schedules.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace resident_stage_tasks_test {

namespace {

using namespace roundpipe;
using detail::ResidentStageTasks;
using test::bound_shape;

/// The tasks that one micro-batch of two places adds on the second device, forward and backward.
std::vector<Task> last_place(ScheduleShape const& shape) {
  ResidentStageTasks tasks(shape);
  CHECK(tasks.places() == 2);
  tasks.forward({1, 1, 0, 0});
  tasks.backward({1, 1, 0, 0});
  auto const lists = std::move(tasks).take();
  REQUIRE(lists.size() == 2);
  CHECK(lists[0].empty());
  return lists[1];
}

Task task(int stage, TaskKind kind) {
  return {StageId(stage), kind, RoundId(0), MicroBatchId(0)};
}

}  // namespace

TEST_CASE("a place is a forward stage and the backward stage that mirrors it") {
  CHECK(last_place(bound_shape(2, 2, 1, false)) == std::vector{task(1, TaskKind::forward),
                                                               task(2, TaskKind::recompute),
                                                               task(2, TaskKind::backward)});
}

TEST_CASE("the forward of the fused place is part of its backward") {
  CHECK(last_place(bound_shape(2, 2, 1, true)) == std::vector{task(1, TaskKind::fused)});
}

TEST_CASE("a forward-only call has no backwards, whole or in halves") {
  ScheduleShape const shape{.forward_stages = 2,
                            .backward_stages = 0,
                            .devices = 2,
                            .micro_batches_per_round = 1,
                            .rounds = 1};
  CHECK(last_place(shape) == std::vector{task(1, TaskKind::forward)});
  ResidentStageTasks tasks(shape);
  CHECK(tasks.forward_only());
  tasks.input_gradient({0, 0, 0, 0});
  tasks.weight_gradient({0, 0, 0, 0});
  CHECK(std::move(tasks).take()[0].empty());
}

TEST_CASE("halves: recomputation comes with the first half") {
  ResidentStageTasks tasks(bound_shape(1, 1, 1, false));
  tasks.input_gradient({0, 0, 0, 0});
  tasks.weight_gradient({0, 0, 0, 0});
  CHECK(std::move(tasks).take()[0] == std::vector{task(1, TaskKind::recompute),
                                                  task(1, TaskKind::input_gradient),
                                                  task(1, TaskKind::weight_gradient)});
}

TEST_CASE("backward stages must mirror the forward stages") {
  auto const refused = [](ScheduleShape const& shape) {
    return test::error_of([&] { (void)ResidentStageTasks(shape); }).code() ==
           Errc::invalid_argument;
  };
  for (std::size_t forward = 0; forward <= 4; ++forward) {
    for (std::size_t backward = 1; backward <= 4; ++backward) {
      CHECK(refused({forward, backward, 1, 1, 1, true}) == (backward != forward + 1));
      CHECK(refused({forward, backward, 1, 1, 1, false}) == (backward != forward));
    }
  }
  CHECK(refused({}));
}

TEST_CASE(
    "a schedule that cannot fuse a stage refuses fused calls, except those without backwards") {
  auto const code = [](ScheduleShape const& shape) {
    return test::error_of([&] { detail::refuse_fused(shape, "no"); }).code();
  };
  CHECK(code(bound_shape(2, 2, 1, true)) == Errc::invalid_argument);
  CHECK_FALSE(code(bound_shape(2, 2, 1, false)));
  CHECK_FALSE(code({2, 0, 2, 1, 1}));
}

}  // namespace resident_stage_tasks_test
