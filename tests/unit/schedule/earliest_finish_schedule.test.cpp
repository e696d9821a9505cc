// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/schedule/earliest_finish_schedule.hpp>

#include <roundpipe/core/random.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>
#include <support/bubble_study.hpp>
#include <support/error_of.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace earliest_finish_schedule_test {

namespace {

using namespace roundpipe;
using test::error_of;

/// A call, and the times of its stages.
struct Case {
  ScheduleShape shape;
  std::vector<test::StageTimes> times;
  double hand_over = 0;

  [[nodiscard]] EarliestFinishSchedule schedule(std::vector<double> speeds) const {
    std::vector<StageTime> stages;
    for (std::size_t i = 0; i < times.size(); ++i) {
      auto const& time = times[i];
      auto const fused = shape.fused && i == shape.forward_stages;
      if (i < shape.forward_stages) {
        stages.push_back({0, time.forward});
      } else if (fused) {
        stages.push_back({0, time.forward + time.backward});
      } else {
        stages.push_back({time.recompute, time.backward});
      }
    }
    return {stages, std::move(speeds), hand_over};
  }
  template <Schedule S>
  [[nodiscard]] test::TaskRun run(S const& schedule, std::vector<double> const& speeds) const {
    return test::run_tasks(shape, schedule.tasks(shape), times, hand_over, speeds);
  }
};

/// Calls of any size for \p devices devices, with stages of 1 to 3.
Case random_case(std::uint32_t seed, std::size_t devices) {
  auto const draw = [&](std::uint32_t i) {
    return static_cast<double>(uniform(random_word({seed}, i)));
  };
  auto const whole = [&](std::uint32_t i, std::size_t most) {
    return static_cast<std::size_t>(draw(i) * static_cast<double>(most + 1));
  };
  Case result;
  result.shape = {.forward_stages = whole(0, 7),
                  .backward_stages = whole(1, 9),
                  .devices = devices,
                  .micro_batches_per_round = 1 + whole(2, 9),
                  .rounds = 1 + whole(3, 2),
                  .fused = seed % 3 != 0};
  if (result.shape.stages() == 0) {
    result.shape.forward_stages = 1;
  }
  for (std::uint32_t i = 0; i < result.shape.stages(); ++i) {
    result.times.push_back({1 + 2 * draw(8 + 2 * i), 1, 1 + draw(9 + 2 * i)});
  }
  result.hand_over = draw(4) / 4;
  return result;
}

/// Four devices; two of them run at half speed.
std::vector<double> const uneven{1, 1, 0.5, 0.5};

}  // namespace

TEST_CASE("devices of equal speed get slots round robin, in this call and in the next") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    auto const test = random_case(seed, 1 + seed % 5);
    for (auto const speed : {1.0, 0.25}) {
      auto const schedule = test.schedule(std::vector<double>(test.shape.devices, speed));
      REQUIRE(schedule.tasks(test.shape) == RoundRobinSchedule{}.tasks(test.shape));
      REQUIRE(schedule.advance(test.shape) == RoundRobinSchedule{}.advance(test.shape));
    }
  }
}

TEST_CASE("at any speeds, every task runs once and slots stay whole") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    auto const test = random_case(seed, 4);
    for (auto const& speeds : {uneven, {0.1, 1, 1, 1}, {1, 0.9, 0.7, 0.3}}) {
      auto const schedule = test.schedule(speeds);
      auto const tasks = schedule.tasks(test.shape);
      REQUIRE(test::is_complete(test.shape, tasks));
      REQUIRE(test.run(schedule, speeds).complete);
      REQUIRE(order_slots(test.shape, tasks).size() == test.shape.stages() * test.shape.rounds);
      REQUIRE(schedule.advance(test.shape) == 0);
    }
  }
}

TEST_CASE("earliest finish is never slower than round robin, and faster when speeds differ") {
  int faster = 0;
  int cases = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    auto const test = random_case(seed, 4);
    auto const dealt = test.run(test.schedule(uneven), uneven).makespan;
    auto const baseline = test.run(RoundRobinSchedule{}, uneven).makespan;
    REQUIRE(dealt <= baseline * (1 + 1e-12));
    faster += dealt < baseline * 0.99 ? 1 : 0;
    ++cases;
  }
  CHECK(faster > cases * 3 / 4);
}

TEST_CASE("handing over to the next stage on the same device takes no time") {
  // Two stages of 1 s, two micro-batches, two rounds: 8 s on the fast device. The slow device would
  // end its first slot after 6.7 s, which is late, unless hand-overs counted on the fast one, too.
  ScheduleShape const shape{
      .forward_stages = 2, .devices = 2, .micro_batches_per_round = 2, .rounds = 2};
  EarliestFinishSchedule const schedule({{0, 1}, {0, 1}}, {0.3, 1}, 5);
  auto const tasks = schedule.tasks(shape);
  CHECK(tasks[0].empty());
  CHECK(tasks[1].size() == 8);
}

TEST_CASE("with speeds 1, 1, 0.5 and 0.5, the study's models run at least a fifth faster") {
  for (auto const& [name, study] : test::bubble_study().models) {
    CAPTURE(name);
    auto const model = test::studied_model(name);
    auto const& partition = study.partition;
    Case const test{{partition.forward.size(), partition.backward.size(), 4, 8, 2},
                    test::times_of(model.costs, partition),
                    model.communication};
    EarliestFinishSchedule const schedule(
        stage_times(model.costs, partition), uneven, model.communication);
    CHECK(test.run(schedule, uneven).makespan * 1.2 <
          test.run(RoundRobinSchedule{}, uneven).makespan);
  }
}

TEST_CASE("a slot goes to the device that finishes it first") {
  // Each stage waits for the previous one: the fast device is always free in time.
  ScheduleShape const shape{.forward_stages = 3,
                            .backward_stages = 0,
                            .devices = 2,
                            .micro_batches_per_round = 1,
                            .rounds = 1};
  EarliestFinishSchedule const schedule({{0, 1}, {0, 1}, {0, 1}}, {1, 0.25});
  auto const tasks = schedule.tasks(shape);
  CHECK(tasks[0].size() == 3);
  CHECK(tasks[1].empty());
  // The fast device is busy until 16 and would finish stage 1 at 20. The slow device gets a
  // micro-batch at 4, 8, 12 and 16 and finishes at 18.
  EarliestFinishSchedule const close({{0, 4}, {0, 1}}, {1, 0.5});
  auto const dealt = close.tasks({2, 0, 2, 4, 1});
  CHECK(dealt[0].size() == 4);
  CHECK(dealt[1].size() == 4);
}

TEST_CASE("the cost of handing over keeps a stage on the device of the previous stage") {
  ScheduleShape const shape{.forward_stages = 2,
                            .backward_stages = 0,
                            .devices = 2,
                            .micro_batches_per_round = 1,
                            .rounds = 1};
  auto const on_first = [&](double hand_over) {
    return EarliestFinishSchedule({{0, 1}, {0, 1}}, {1, 1.5}, hand_over).tasks(shape)[0].size();
  };
  CHECK(on_first(0) == 0);  // the second device is faster, and free when the second stage starts
  EarliestFinishSchedule const far({{0, 4}, {0, 4}}, {1, 1.01}, 100);
  CHECK(far.tasks({2, 0, 2, 8, 1})[1].size() == 16);
  EarliestFinishSchedule const near({{0, 4}, {0, 4}}, {1, 1.01}, 0);
  CHECK(near.tasks({2, 0, 2, 8, 1})[1].size() == 8);
}

TEST_CASE("stage times: forwards and fused stages wait for other stages, recomputation does not") {
  std::vector<LayerCost> const costs{{1, 2}, {3, 4, 5}};
  auto const fused = stage_times(costs, {{{0, 1}}, {{1, 1}, {0, 1}}});
  REQUIRE(fused.size() == 3);
  CHECK(fused[0].early_s == 0);
  CHECK(fused[0].late_s == 1);
  CHECK(fused[1].early_s == 0);
  CHECK(fused[1].late_s == 7);
  CHECK(fused[2].early_s == 1);
  CHECK(fused[2].late_s == 2);
  auto const apart = stage_times(costs, {{{0, 2}}, {{1, 1}, {0, 1}}});
  REQUIRE(apart.size() == 3);
  CHECK(apart[0].late_s == 4);
  CHECK(apart[1].early_s == 5);
  CHECK(apart[1].late_s == 4);
  CHECK(error_of([&] { (void)stage_times(costs, {{{0, 3}}, {}}); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("invalid arguments are refused") {
  auto const refused = [](auto&& f) { return error_of(f).code() == Errc::invalid_argument; };
  for (auto const s : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK(refused([&] { EarliestFinishSchedule({{0, s}}, {1, 2}); }));
    CHECK(refused([&] { EarliestFinishSchedule({{s, 0}}, {1, 2}); }));
    CHECK(refused([&] { EarliestFinishSchedule({{0, 1}}, {1, s}); }));
    CHECK(refused([&] { EarliestFinishSchedule({{0, 1}}, {1, 2}, s); }));
  }
  CHECK(refused([&] { EarliestFinishSchedule({{0, 1}}, {1, 0}); }));
  CHECK(refused([&] { EarliestFinishSchedule({{0, 1}}, {}); }));
  for (auto const& speeds : {std::vector<double>{1, 1}, {1, 2}}) {
    EarliestFinishSchedule const schedule({{0, 1}, {0, 1}}, speeds);
    auto const refuses = [&](ScheduleShape const& shape) {
      return refused([&] { (void)schedule.tasks(shape); }) &&
             refused([&] { (void)schedule.advance(shape); });
    };
    CHECK_FALSE(refuses({1, 1, 2, 1, 1}));
    CHECK(refuses({1, 2, 2, 1, 1}));
    CHECK(refuses({1, 1, 3, 1, 1}));
    CHECK(refuses({1, 1, 2, 0, 1}));
    CHECK(refuses({1, 1, 2, 1, 0}));
  }
}

}  // namespace earliest_finish_schedule_test
