// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/interleaved_schedule.hpp>

#include <support/bound_schedules.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace interleaved_schedule_test {

using namespace roundpipe;
using test::bound_shape;

/// Shapes that it accepts.
std::vector<ScheduleShape> shapes() {
  return test::bound_shapes([](ScheduleShape const& shape) {
    auto const places = std::max(shape.forward_stages, shape.backward_stages);
    return places % shape.devices == 0 &&
           (places == shape.devices || shape.micro_batches_per_round % shape.devices == 0);
  });
}

TEST_CASE("interleaved: every stage runs every micro-batch once, and no device waits forever") {
  test::check_grid(InterleavedSchedule{}, shapes());
}

TEST_CASE("interleaved: the bubble of equal stages is (P - 1) / (v M + P - 1)") {
  for (std::size_t p = 1; p <= 6; ++p) {
    for (std::size_t v = 1; v <= 4; ++v) {
      for (std::size_t m = 1; m <= 4 * p; ++m) {
        if (v > 1 && m % p != 0) {
          continue;
        }
        for (auto const fused : {false, true}) {
          for (auto const& times : {test::StageTimes{1, 0, 2}, test::StageTimes{3, 0, 1}}) {
            auto const run =
                test::run_equal(InterleavedSchedule{}, bound_shape(p * v, p, m, fused), times);
            auto const bubble = static_cast<double>(p - 1) / static_cast<double>(v * m + p - 1);
            REQUIRE(run.complete);
            REQUIRE(run.bubble() == doctest::Approx(bubble));
          }
        }
      }
    }
  }
}

TEST_CASE("interleaved: at most 2 (N - 1 - r) + (v - 1) N + 1 are in flight on device r") {
  for (std::size_t n = 1; n <= 5; ++n) {
    for (std::size_t v = 1; v <= 4; ++v) {
      for (std::size_t groups = 1; groups <= 4; ++groups) {
        auto const m = groups * n;
        auto const run =
            test::run_equal(InterleavedSchedule{}, bound_shape(n * v, n, m, true), {1, 0, 2});
        for (std::size_t r = 0; r < n; ++r) {
          auto const bound = std::min(2 * (n - 1 - r) + (v - 1) * n + 1, v * m);
          CHECK(run.peak_on_device[r] <= static_cast<int>(bound));
        }
        CHECK(run.peak_on_device[n - 1] == static_cast<int>((v - 1) * n + 1));
      }
    }
  }
}

TEST_CASE("interleaved: forwards ahead hide the cost of handing over") {
  auto const shape = bound_shape(8, 4, 16, true);
  auto const free = test::run_equal(InterleavedSchedule{}, shape, {1, 0, 2});
  auto const late = test::run_equal(InterleavedSchedule{}, shape, {1, 0, 2}, 0.25);
  // Fill and drain pass 7 boundaries each way; without hiding, every micro-batch would.
  CHECK(late.makespan - free.makespan <= 14 * 0.25 + 1e-9);
}

TEST_CASE("interleaved refuses counts that are not multiples of the devices") {
  test::check_refusals(InterleavedSchedule{}, bound_shape(6, 3, 3, true));
  CHECK(test::refuses(InterleavedSchedule{}, bound_shape(5, 3, 3, true)));
  CHECK(test::refuses(InterleavedSchedule{}, bound_shape(6, 3, 4, true)));
  CHECK_FALSE(test::refuses(InterleavedSchedule{}, bound_shape(3, 3, 4, true)));
}

}  // namespace interleaved_schedule_test
