// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/naive_schedule.hpp>

#include <support/bound_schedules.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace naive_schedule_test {

using namespace roundpipe;
using test::bound_shape;

TEST_CASE(
    "naive: every stage runs every micro-batch of every round once, and no device waits forever") {
  test::check_grid(NaiveSchedule{}, test::bound_shapes());
}

TEST_CASE("naive, textbook: 4 stages, 8 micro-batches, forward 1, backward 2 take 96 units") {
  for (auto const fused : {false, true}) {
    auto const run = test::run_equal(NaiveSchedule{}, bound_shape(4, 4, 8, fused), {1, 0, 2});
    CHECK(run.complete);
    CHECK(run.makespan == 96);
    CHECK(run.bubble() == doctest::Approx(0.75));
    CHECK(run.peak_in_flight == std::vector{1, 1, 1, 1});
  }
}

TEST_CASE("naive: stages take turns, so that the makespan is the sum of all work") {
  for (auto const& shape : test::bound_shapes()) {
    if (shape.backward_stages == 0) {
      continue;
    }
    auto const run = test::run_equal(NaiveSchedule{}, shape, {1, 0, 3});
    auto const places = static_cast<double>(shape.backward_stages);
    auto const micro_batches = static_cast<double>(shape.micro_batches_per_round * shape.rounds);
    CHECK(run.makespan == 4 * places * micro_batches);
    CHECK(run.bubble() == doctest::Approx(1 - 1 / static_cast<double>(shape.devices)));
  }
}

TEST_CASE("naive refuses invalid shapes") {
  test::check_refusals(NaiveSchedule{}, bound_shape(3, 3, 2, true));
}

}  // namespace naive_schedule_test
