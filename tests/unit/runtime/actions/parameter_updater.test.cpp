// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/parameter_updater.hpp>

#include <support/error_of.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

namespace parameter_updater_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("with two master copies step T writes copy T mod 2 and leaves the other copy unchanged") {
  HostParameters f({.copies = {.master_copies = 2}, .type = DType::bf16});
  auto const first = f.master(0);
  CHECK(f.master(1) == first);
  f.land_all(1);
  f.updater.update(BlockId(0), 1, 1);
  CHECK(f.master(0) == first);
  CHECK(f.master(1) == static_cast<float>(BFloat16(f.weights(BlockId(0), 0)[0])));
  f.updater.update(BlockId(0), 2, 1);
  CHECK(f.master(2) == f.master(0));
  CHECK(f.master(0) != first);
}

TEST_CASE("with two gradient buffers a step does not see the next iteration's gradients") {
  HostParameters f({.copies = {.gradient_buffers = 2}});
  auto const before = f.weights(BlockId(0), 0)[0];
  f.land_all(1, 1);
  f.land_all(100, 2);
  f.updater.update(BlockId(0), 1, 1);
  CHECK(f.weights(BlockId(0), 0)[0] == before - 1);
}

TEST_CASE("weights without an optimizer copy move from one master copy to the other") {
  for (auto const type : {DType::bf16, DType::f32}) {
    HostParameters f(
        {.copies = {.master_copies = 2, .state_type = StateType::declared}, .type = type});
    auto const before = f.weights(BlockId(0), 0)[0];
    f.land_all(64);  // far more than rounding removes
    for (std::size_t b = 0; b < f.blocks.blocks.size(); ++b) {
      f.updater.update(BlockId(b), 1, 1);
    }
    auto const after = f.weights(BlockId(0), 0)[0];
    CHECK(after == doctest::Approx(before - 64).epsilon(0.01));
    CHECK(f.progress.finished_steps() == 1);
  }
}

TEST_CASE("clipping scales by the norm of all blocks, and refuses one that is not finite") {
  HostParameters f({.updater = {.scaling = {.clip_norm = 0.5}}});
  auto const elements = f.blocks.parameter_count();
  f.land_all(1);
  f.measure_all(1);
  auto const before = f.weights(BlockId(0), 0)[0];
  f.updater.update(BlockId(0), 1, 1);
  CHECK(f.weights(BlockId(0), 0)[0] ==
        doctest::Approx(before - 0.5 / std::sqrt(static_cast<double>(elements))).epsilon(1e-5));

  f.land_all(std::numeric_limits<float>::infinity());
  f.measure_all(7);
  auto const error = error_of([&] { f.updater.update(BlockId(0), 7, 1); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().find("step 7") != std::string::npos);
}

TEST_CASE("gradients are divided by their loss scale before clipping") {
  HostParameters f({.updater = {.scaling = {.clip_norm = 1e6, .skips_overflows = true}}});
  f.land_all(1024);
  f.measure_all(1);
  auto const before = f.weights(BlockId(0), 0)[0];
  f.updater.update(BlockId(0), 1, 1024);
  CHECK(f.weights(BlockId(0), 0)[0] == before - 1);
}

TEST_CASE("a step that overflows keeps the weights, and copies them to its master copy") {
  for (auto const state : {StateType::fp32, StateType::declared}) {
    CAPTURE(static_cast<int>(state));
    HostParameters f({.copies = {.master_copies = 2, .state_type = state},
                      .updater = {.scaling = {.skips_overflows = true}},
                      .type = DType::bf16});
    f.land_all(64);  // far more than rounding removes
    f.measure_all(1);
    f.updater.update(BlockId(0), 1, 1);
    CHECK_FALSE(f.updater.has_overflowed(1));
    auto const before = f.master(1);
    CHECK(f.master(0) != before);
    f.land_all(std::numeric_limits<float>::infinity(), 2);
    f.measure_all(2);
    f.updater.update(BlockId(0), 2, 1);
    CHECK(f.updater.has_overflowed(2));
    CHECK_FALSE(f.updater.has_overflowed(1));
    CHECK(f.master(1) == before);
    CHECK(f.master(2) == before);
  }
}

TEST_CASE("a step is finished when every block is updated, and torn before") {
  HostParameters f({});
  for (std::size_t b = 0; b < f.blocks.blocks.size(); ++b) {
    CHECK(f.progress.finished_steps() == 0);
    CHECK(f.progress.is_torn() == (b > 0));
    f.updater.update(BlockId(b), 1, 1);
  }
  CHECK(f.progress.finished_steps() == 1);
  CHECK_FALSE(f.progress.is_torn());
}

namespace {

/// A step of every block, in their order.
ActionGraph step_of(ParameterBlocks const& blocks) {
  ActionGraph graph;
  for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
    auto& action = graph.actions.emplace_back();
    action.kind = ActionKind::optimizer_step;
    action.lane = {LaneKind::optimizer, DeviceId::none()};
    action.block = BlockId(b);
  }
  return graph;
}

}  // namespace

TEST_CASE("a step that has begun is finished after an error, if it has all its gradients") {
  for (bool const finishes : {true, false}) {
    HostParameters f({.updater = {.finishes_steps = finishes}});
    f.land_all(1);
    GraphProgram const program(step_of(f.blocks));
    REQUIRE(program.graph().actions.size() > 1);
    CallData call;
    RunState const run(program, call);
    f.updater.abandon(run, ActionId(0));  // nothing has begun
    CHECK_FALSE(f.progress.is_torn());
    CHECK(error_of([&] { f.updater.run(run, ActionId(0)); }).code() == Errc::aborted);
    f.progress.resume();
    f.updater.run(run, ActionId(0));
    f.updater.abandon(run, ActionId(1));
    CHECK(f.progress.is_torn() != finishes);
    CHECK(f.progress.finished_steps() == (finishes ? 1 : 0));
  }
}

}  // namespace parameter_updater_test
