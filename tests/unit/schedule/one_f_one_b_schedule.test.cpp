// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/one_f_one_b_schedule.hpp>

#include <support/bound_schedules.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace one_f_one_b_schedule_test {

using namespace roundpipe;
using test::bound_shape;

TEST_CASE(
    "1F1B: every stage runs every micro-batch of every round once, and no device waits forever") {
  test::check_grid(OneFOneBSchedule{}, test::bound_shapes(test::stage_per_device));
}

TEST_CASE("1F1B, textbook: 4 stages, 8 micro-batches, forward 1, backward 2 take 33 units") {
  for (auto const fused : {false, true}) {
    auto const run = test::run_equal(OneFOneBSchedule{}, bound_shape(4, 4, 8, fused), {1, 0, 2});
    CHECK(run.complete);
    CHECK(run.makespan == 33);
    CHECK(run.bubble() == doctest::Approx(3.0 / 11));
    CHECK(run.peak_in_flight == std::vector{4, 3, 2, 1});
  }
}

TEST_CASE(
    "with equal stages 1F1B has the bubble of GPipe, with at most P - r in flight at stage r") {
  for (std::size_t p = 1; p <= 9; ++p) {
    for (std::size_t m = 1; m <= 20; ++m) {
      auto const run = test::run_equal(OneFOneBSchedule{}, bound_shape(p, p, m, true), {1, 0, 2});
      auto const bubble = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
      CHECK(run.bubble() == doctest::Approx(bubble));
      for (std::size_t r = 0; r < p; ++r) {
        CHECK(run.peak_in_flight[r] == static_cast<int>(std::min(m, p - r)));
      }
    }
  }
}

TEST_CASE("the fused last stage of 1F1B recomputes nothing") {
  auto const fused = test::run_equal(OneFOneBSchedule{}, bound_shape(4, 4, 8, true), {1, 1, 2});
  auto const apart = test::run_equal(OneFOneBSchedule{}, bound_shape(4, 4, 8, false), {1, 1, 2});
  CHECK(fused.busy[3] == 24);
  CHECK(apart.busy[3] == 32);
  CHECK(fused.makespan <= apart.makespan);
}

TEST_CASE("1F1B refuses more stages than devices, and invalid shapes") {
  test::check_refusals(OneFOneBSchedule{}, bound_shape(3, 3, 2, true));
  CHECK(test::refuses(OneFOneBSchedule{}, bound_shape(4, 3, 2, true)));
  CHECK(fuses(OneFOneBSchedule{}));
}

}  // namespace one_f_one_b_schedule_test
