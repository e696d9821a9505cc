// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/training_runs.hpp>

#include <support/error_of.hpp>
#include <support/logged_work.hpp>
#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace training_runs_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

struct Training {
  explicit Training(std::optional<LossScaleOptions> scale = {}, std::size_t master_copies = 2)
      : scale_(scale),
        planner_(RoundRobinSchedule{},
                 PriorityTransferEngine{},
                 LayerEventProtocol({.master_copies = master_copies}),
                 Partitioner{}) {
    runs.make_slots(planned.shapes.capacity().batch.tensors.bytes(), planned.arena.taker());
  }

  /// Posts a call whose losses are \p loss each.
  RunSlot<HostBackend> const& call(double loss) {
    auto const& slot = runs.begin_call([this](std::uint64_t step) {
      asked.push_back(step);
      return false;
    });
    slot.data().shapes = planned.call.shapes;
    for (auto const& place : slot.data().losses) {
      *reinterpret_cast<double*>(place.data()) = loss;
    }
    runs.post_call(slot, 0.5);
    return slot;
  }

  [[nodiscard]] PipelineOptions options() const {
    auto options = PlannedCall::options();
    options.loss_scale = scale_;
    options.calls_per_step = 2;
    return options;
  }

  std::optional<LossScaleOptions> scale_;
  decltype(PlannedCall::planner) planner_;
  std::vector<std::uint64_t> asked;  // whose overflows
  PlannedCall planned;
  LoggedWork work;
  RunSlots<HostBackend> slots{executor, PlannedCall::options()};
  TrainingRuns<HostBackend> runs{slots, planned.plan, planner_, options()};
  Executor<HostBackend> executor{
      planned.backend, work, work.host_lanes(), 2};  // its runs outlive it
};

}  // namespace

TEST_CASE("calls are numbered, and the first of an iteration begins its gradients") {
  Training test;
  for (std::size_t i = 0; i < 4; ++i) {
    auto const& slot = test.call(1);
    CHECK(slot.data().number == i);
    CHECK(slot.data().begins_gradients == (i % 2 == 0));
    CHECK(slot.data().gradient_scale == 0.5);
    CHECK(test.runs.take_loss() == 2);
    if (i % 2 == 1) {
      test.runs.post_step();
    }
  }
  CHECK(test.runs.posted().steps == 2);
  CHECK(test.runs.posted().visible_step == 1);
  test.runs.synchronize();
  CHECK(test.runs.posted().visible_step == 2);
}

TEST_CASE("what was posted after a step is taken back, and numbers go on from there") {
  Training test;
  for (std::size_t step = 0; step < 3; ++step) {
    test.call(1);
    test.runs.take_loss();
    test.runs.post_step();
  }
  test.call(1);
  test.executor.synchronize();
  test.runs.go_back_to(2);
  test.runs.require_losses_taken();
  CHECK(test.runs.posted().calls == 2);
  CHECK(test.runs.posted().pending_calls == 0);
  CHECK(test.runs.posted().iteration() == 3);
  CHECK(test.runs.posted().visible_step == 1);
  CHECK(test.runs.newest().visible_step == 2);
  CHECK(test.call(1).data().begins_gradients);
  test.executor.synchronize();
}

TEST_CASE("with P copies, the newest weights of a master copy are those that it was brought to") {
  Training test({}, 1);
  CHECK(test.runs.copies_parameters());
  test.call(1);
  test.runs.post_step();
  test.executor.synchronize();
  CHECK(test.runs.newest().visible_step == 0);
  auto const done = test.work.done().size();
  test.runs.synchronize();
  CHECK(test.work.done().size() > done);  // a run of P copies
  CHECK(test.runs.newest().visible_step == 1);
}

TEST_CASE("more calls than an iteration has are refused") {
  Training test;
  test.call(1);
  test.call(1);
  CHECK(error_of([&] { test.call(1); }).code() == Errc::invalid_argument);
  test.executor.synchronize();
}

TEST_CASE("losses are taken in the order of their calls, and no call begins behind two of them") {
  Training test;
  CHECK(error_of([&] { test.runs.take_loss(); }).code() == Errc::invalid_argument);
  test.call(0);
  test.runs.post_step();
  for (std::size_t step = 1; step < 6; ++step) {
    test.call(static_cast<double>(step));
    test.runs.post_step();
    CHECK(error_of([&] { test.call(9); }).code() == Errc::invalid_argument);
    CHECK(error_of([&] { test.runs.require_losses_taken(); }).code() == Errc::invalid_argument);
    CHECK(test.runs.take_loss() == 2 * static_cast<double>(step - 1));
  }
  CHECK(test.runs.take_loss() == 10);
  test.runs.require_losses_taken();
  CHECK(error_of([&] { test.runs.take_loss(); }).code() == Errc::invalid_argument);
}

TEST_CASE("an iteration takes its loss scale when its first call begins") {
  Training test(LossScaleOptions{.initial = 8});
  for (std::size_t step = 1; step < 4; ++step) {
    auto const& slot = test.call(8);
    CHECK(slot.data().gradient_scale == 4);
    CHECK(test.runs.take_loss() == 2);
    test.runs.post_step();
  }
  CHECK(test.asked == std::vector<std::uint64_t>{1});  // with a staleness of 1
}

TEST_CASE("a loss that is not finite stops everything, behind the steps") {
  Training test;
  test.call(1);
  test.runs.post_step();
  test.call(std::numeric_limits<double>::quiet_NaN());
  test.runs.post_step();
  CHECK(test.runs.take_loss() == 2);
  auto const error = error_of([&] { test.runs.take_loss(); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().starts_with("the loss of step 2 is not finite: stage "));
}

TEST_CASE("a training goes on from the position of another") {
  Training first(LossScaleOptions{.initial = 8});
  for (std::size_t step = 1; step < 4; ++step) {
    first.call(1);
    first.runs.take_loss();
    CHECK(error_of([&] { (void)first.runs.position({}); }).code() == Errc::invalid_argument);
    CHECK(first.runs.gradients().iteration == step);
    CHECK(first.runs.gradients().loss_scale == 8);
    first.runs.post_step();
  }
  CHECK(error_of([&] { (void)first.runs.gradients(); }).code() == Errc::invalid_argument);
  first.executor.synchronize();
  auto const position = first.runs.position([](std::uint64_t step) { return step == 3; });
  CHECK(position.step == 3);
  CHECK(position.visible_step == 2);
  CHECK(position.calls == 3);
  CHECK(position.first_device == first.executor.first_device());
  REQUIRE(position.loss_scale.has_value());
  CHECK(position.loss_scale->recorded_steps == 1);
  CHECK(position.overflowed == std::array{false, true});

  Training second(LossScaleOptions{.initial = 8});
  second.runs.restore(second.runs.continued(position));
  CHECK(second.executor.first_device() == first.executor.first_device());
  auto const& slot = second.call(1);
  CHECK(slot.data().number == 3);
  CHECK(slot.data().iteration == 4);
  CHECK(slot.data().version == 2);
  CHECK(second.asked == std::vector<std::uint64_t>{2});  // step 1 is in the state's scale
}

}  // namespace training_runs_test
