// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/dualpipe_schedule.hpp>

#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <roundpipe/schedule/zb_h1_schedule.hpp>
#include <support/bound_schedules.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace dualpipe_schedule_test {

using namespace roundpipe;
using test::bound_shape;

/// Shapes that it accepts: unfused and forward-only.
std::vector<ScheduleShape> shapes() {
  std::vector<ScheduleShape> shapes;
  for (std::size_t n = 2; n <= 8; n += 2) {
    for (auto m = 2 * (n - 1); m <= 3 * n; m += 2) {
      for (std::size_t rounds = 1; rounds <= 2; ++rounds) {
        shapes.push_back(bound_shape(n, n, m, false, rounds));
        shapes.push_back({n, 0, n, m, rounds});
      }
    }
  }
  return shapes;
}

TEST_CASE(
    "DualPipe: every stage runs every micro-batch of every round once, and no device waits "
    "forever") {
  test::check_grid(DualPipeSchedule{}, shapes());
}

TEST_CASE("DualPipe: half of the micro-batches enter at each end") {
  auto const shape = bound_shape(4, 4, 8, false);
  auto const tasks = DualPipeSchedule{}.tasks(shape);
  for (std::size_t device = 0; device < 4; ++device) {
    for (auto const& task : tasks[device]) {
      auto const stage = task.stage.index() < 4 ? task.stage.index() : 7 - task.stage.index();
      CHECK(device == (task.micro_batch.index() < 4 ? stage : 3 - stage));
    }
  }
}

TEST_CASE(
    "the bubble of DualPipe is (N / 2 - 1)(F + B - W) on each device: less than ZB-H1's and "
    "1F1B's") {
  // Backwards with halves of 1 each.
  for (auto const forward : {1.0, 1.25, 1.5, 2.0}) {
    for (std::size_t n = 2; n <= 10; n += 2) {
      for (auto m = 2 * (n - 1); m <= 3 * n; m += 2) {
        auto const shape = bound_shape(n, n, m, false);
        test::StageTimes const times{forward, 0, 2};
        auto const run = test::run_equal(DualPipeSchedule{}, shape, times);
        auto const work = static_cast<double>(m) * (forward + 2);
        REQUIRE(run.complete);
        REQUIRE(run.makespan == work + (static_cast<double>(n) / 2 - 1) * forward);
        auto const zb_h1 = test::run_equal(ZbH1Schedule{}, shape, times);
        auto const one_f_one_b = test::run_equal(OneFOneBSchedule{}, shape, times);
        CHECK(run.bubble() < zb_h1.bubble());
        CHECK(zb_h1.bubble() < one_f_one_b.bubble());
      }
    }
  }
}

TEST_CASE("DualPipe has N + 1 micro-batches in flight on each device") {
  for (std::size_t n = 2; n <= 8; n += 2) {
    auto const run =
        test::run_equal(DualPipeSchedule{}, bound_shape(n, n, 4 * n, false), {1, 0, 2});
    CHECK(run.peak_on_device == std::vector<int>(n, static_cast<int>(n + 1)));
  }
}

TEST_CASE("DualPipe refuses odd counts, too few micro-batches, and invalid shapes") {
  test::check_refusals(DualPipeSchedule{}, bound_shape(4, 4, 8, false));
  CHECK(test::refuses(DualPipeSchedule{}, bound_shape(4, 4, 8, true)));
  CHECK(test::refuses(DualPipeSchedule{}, bound_shape(3, 3, 8, false)));  // odd devices
  CHECK(test::refuses(DualPipeSchedule{}, bound_shape(2, 4, 8, false)));  // stages
  CHECK(test::refuses(DualPipeSchedule{}, bound_shape(8, 4, 8, false)));  // stages
  CHECK(test::refuses(DualPipeSchedule{}, bound_shape(4, 4, 9, false)));  // odd micro-batches
  CHECK(test::refuses(DualPipeSchedule{}, bound_shape(4, 4, 4, false)));  // too few
  CHECK_FALSE(test::refuses(DualPipeSchedule{}, bound_shape(4, 4, 6, false)));
  CHECK_FALSE(fuses(DualPipeSchedule{}));
}

}  // namespace dualpipe_schedule_test
