// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/zb_h1_schedule.hpp>

#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <support/bound_schedules.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace zb_h1_schedule_test {

using namespace roundpipe;
using test::bound_shape;

TEST_CASE(
    "ZB-H1: every stage runs every micro-batch of every round once, and no device waits forever") {
  test::check_grid(ZbH1Schedule{}, test::bound_shapes([](ScheduleShape const& shape) {
                     return test::stage_per_device(shape) &&
                            (!shape.fused || shape.backward_stages == 0);
                   }));
}

TEST_CASE("the bubble of ZB-H1 is (P - 1)(F + B - W) on each device; 1F1B has (P - 1)(F + B + W)") {
  // Forwards of 1, 2 and 3; backwards with halves of 1 each.
  for (auto const forward : {1.0, 2.0, 3.0}) {
    for (std::size_t p = 1; p <= 8; ++p) {
      for (auto m = p; m <= 3 * p + 2; ++m) {
        auto const shape = bound_shape(p, p, m, false);
        auto const work = static_cast<double>(m) * (forward + 2);
        auto const run = test::run_equal(ZbH1Schedule{}, shape, {forward, 0, 2});
        auto const baseline = test::run_equal(OneFOneBSchedule{}, shape, {forward, 0, 2});
        REQUIRE(run.complete);
        REQUIRE(run.makespan == work + static_cast<double>(p - 1) * forward);
        REQUIRE(baseline.makespan == work + static_cast<double>(p - 1) * (forward + 2));
      }
    }
  }
}

TEST_CASE("with fewer micro-batches than devices, ZB-H1 takes (P + M - 1)(F + 1) + 1") {
  // The last micro-batch reaches the last stage behind M - 1 others, each with its backward half,
  // and passes P - 1 stages on its way back. The other half of its backward ends the call.
  for (auto const forward : {1.0, 2.0, 3.0}) {
    for (std::size_t p = 2; p <= 8; ++p) {
      for (std::size_t m = 1; m < p; ++m) {
        auto const run =
            test::run_equal(ZbH1Schedule{}, bound_shape(p, p, m, false), {forward, 0, 2});
        REQUIRE(run.complete);
        REQUIRE(run.makespan == static_cast<double>(p + m - 1) * (forward + 1) + 1);
      }
    }
  }
}

TEST_CASE("every stage of ZB-H1 holds as many micro-batches as the first stage of 1F1B") {
  for (std::size_t p = 1; p <= 8; ++p) {
    for (std::size_t m = 1; m <= 3 * p; ++m) {
      auto const shape = bound_shape(p, p, m, false);
      auto const run = test::run_equal(ZbH1Schedule{}, shape, {1, 0, 2});
      CHECK(run.peak_in_flight == std::vector<int>(p, static_cast<int>(std::min(m, p))));
    }
  }
}

TEST_CASE("ZB-H1 is no slower than 1F1B when backwards recompute and boundaries take time") {
  for (std::size_t p = 2; p <= 8; ++p) {
    auto const shape = bound_shape(p, p, 2 * p, false);
    auto const time = [&](auto const& schedule) {
      return test::run_equal(schedule, shape, {1, 1, 2}, 0.125).makespan;
    };
    CHECK(time(ZbH1Schedule{}) < time(OneFOneBSchedule{}));
  }
}

TEST_CASE("ZB-H1 refuses fused stages, more stages than devices, and invalid shapes") {
  test::check_refusals(ZbH1Schedule{}, bound_shape(3, 3, 2, false));
  CHECK(test::refuses(ZbH1Schedule{}, bound_shape(3, 3, 2, true)));
  CHECK(test::refuses(ZbH1Schedule{}, bound_shape(4, 3, 2, false)));
  CHECK_FALSE(fuses(ZbH1Schedule{}));
}

}  // namespace zb_h1_schedule_test
