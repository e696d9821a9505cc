// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/gpipe_schedule.hpp>

#include <roundpipe/schedule/slot_order.hpp>
#include <support/bound_schedules.hpp>
#include <support/error_of.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace gpipe_schedule_test {

using namespace roundpipe;
using test::bound_shape;

/// Unfused, with a device for each stage.
std::vector<ScheduleShape> shapes() {
  return test::bound_shapes([](ScheduleShape const& shape) {
    return (!shape.fused || shape.backward_stages == 0) && shape.forward_stages <= shape.devices;
  });
}

TEST_CASE(
    "GPipe: every stage runs every micro-batch of every round once, and no device waits forever") {
  test::check_grid(GPipeSchedule{}, shapes());
}

TEST_CASE("GPipe, textbook: 4 stages, 8 micro-batches, forward 1, backward 2 take 33 units") {
  auto const run = test::run_equal(GPipeSchedule{}, bound_shape(4, 4, 8, false), {1, 0, 2});
  CHECK(run.complete);
  CHECK(run.makespan == 33);
  CHECK(run.bubble() == doctest::Approx(3.0 / 11));
  CHECK(run.peak_in_flight == std::vector{8, 8, 8, 8});
}

TEST_CASE("the bubble of GPipe with equal stages is (P - 1) / (M + P - 1)") {
  for (std::size_t p = 1; p <= 9; ++p) {
    for (std::size_t m = 1; m <= 20; ++m) {
      auto const run = test::run_equal(GPipeSchedule{}, bound_shape(p, p, m, false), {1, 0, 2});
      auto const bubble = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
      CHECK(run.bubble() == doctest::Approx(bubble));
    }
  }
}

TEST_CASE("rounds of GPipe are slots and can be run") {
  for (auto const& shape : shapes()) {
    CHECK(order_slots(shape, GPipeSchedule{}.tasks(shape)).size() == shape.stages() * shape.rounds);
  }
}

TEST_CASE("GPipe refuses fused stages, more stages than devices, and invalid shapes") {
  test::check_refusals(GPipeSchedule{}, bound_shape(3, 3, 2, false));
  CHECK(test::refuses(GPipeSchedule{}, bound_shape(3, 3, 2, true)));
  CHECK(test::refuses(GPipeSchedule{}, bound_shape(4, 3, 2, false)));
  CHECK_FALSE(fuses(GPipeSchedule{}));
}

}  // namespace gpipe_schedule_test
