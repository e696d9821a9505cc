// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/training_state.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace training_state_test {

using namespace roundpipe;
using roundpipe::test::error_of;

namespace {

std::vector<std::byte> const memory(64);

HostTensor tensor(DType dtype = DType::f32) {
  return {HostSpan<std::byte const>(memory).first(6 * size_of(dtype)), {2, 3}, dtype};
}

/// Two trained parameters and a frozen one, a step behind.
TrainingState example() {
  TrainingState state;
  state.position = {.step = 5, .visible_step = 4, .calls = 9, .seed = 3};
  for (auto const* const name : {"0.b", "0.a", "2.c"}) {
    state.parameters.push_back({name, false, tensor(), {tensor(), tensor()}, tensor(DType::bf16)});
  }
  state.parameters[1].frozen = true;
  state.parameters[1].optimizer.clear();
  return state;
}

/// What refuses \p state where \ref example would be taken.
std::string refusal(TrainingState const& state) {
  return error_of([&] { (void)match_parameters(example().parameters, state, state.position); })
      .message();
}

}  // namespace

TEST_CASE("every tensor that counts has a name of its own") {
  auto state = example();
  std::vector<std::string> names;
  auto const list = [&](std::string const& name, HostTensor const&) { names.push_back(name); };
  for_each_tensor(state, list);
  CHECK(names == std::vector<std::string>{"0.b",
                                          "0.b@state0",
                                          "0.b@state1",
                                          "0.b@visible",
                                          "0.a",
                                          "2.c",
                                          "2.c@state0",
                                          "2.c@state1",
                                          "2.c@visible"});
  names.clear();
  state.position.visible_step = 5;
  for_each_tensor(std::as_const(state), list);
  CHECK(names.size() == 7);
}

TEST_CASE("parameters are found in any order") {
  auto state = example();
  std::swap(state.parameters[0], state.parameters[2]);
  auto const matched = match_parameters(example().parameters, state, state.position);
  REQUIRE(matched.size() == 3);
  CHECK(matched[0] == &state.parameters[2]);
  CHECK(matched[2] == &state.parameters[0]);
}

TEST_CASE("what does not match is refused by name") {
  auto const changed = [](auto&& change) {
    auto state = example();
    change(state);
    return refusal(state);
  };
  CHECK(changed([](auto& state) { state.parameters[0].name = "0.x"; }) ==
        "parameter 0.b is missing from the state");
  CHECK(changed([](auto& state) { state.parameters.emplace_back().name = "7.w"; }) ==
        "parameter 7.w of the state is none of the model's");
  CHECK(changed([](auto& state) { state.parameters[1].name = "2.c"; }) ==
        "parameter 2.c is in the state twice");
  CHECK(changed([](auto& state) { state.parameters[0].frozen = true; }) ==
        "parameter 0.b is trained, but in the state frozen");
  CHECK(changed([](auto& state) { state.parameters[1].frozen = false; }) ==
        "parameter 0.a is frozen, but in the state trained");
  CHECK(changed([](auto& state) { state.parameters[2].optimizer.pop_back(); }) ==
        "parameter 2.c has 2 optimizer states, but in the state 1");
  CHECK(changed([](auto& state) { state.parameters[2].weights = tensor(DType::bf16); }) ==
        "parameter 2.c has weights of f32[2, 3], but in the state of bf16[2, 3]");
  CHECK(changed([](auto& state) { state.parameters[0].optimizer[1].shape = {3, 2}; }) ==
        "parameter 0.b has optimizer state 1 of f32[2, 3], but in the state of f32[3, 2]");
  CHECK(changed([](auto& state) { state.parameters[0].visible.bytes = {}; }) ==
        "parameter 0.b has visible weights of 12 bytes, but in the state of 0");

  auto state = example();
  state.parameters[0].visible.bytes = {};
  state.position.visible_step = 5;  // nobody reads them
  CHECK(match_parameters(example().parameters, state, state.position).size() == 3);
}

TEST_CASE(
    "a position is continued with its seed, by a synchronous training with the newest weights") {
  auto const position = example().position;
  CHECK(continued_position(position, 3, 1).visible_step == 4);
  CHECK(continued_position(position, 3, 0).visible_step == 5);
  CHECK(error_of([&] { (void)continued_position(position, 4, 1); }).message() ==
        "the state is of a training with seed 3, the trainer has seed 4");
  auto const refused = [&](auto&& change) {
    auto changed = position;
    change(changed);
    return error_of([&] { (void)continued_position(changed, 3, 1); }).code() ==
           Errc::invalid_argument;
  };
  CHECK(refused([](auto& p) { p.visible_step = 3; }));
  CHECK(refused([](auto& p) { p.visible_step = 6; }));
  CHECK(refused([](auto& p) { p.skipped_steps = 6; }));
  CHECK(refused([](auto& p) { p.loss_scale = {.value = 8, .recorded_steps = 2}; }));
  CHECK(refused([](auto& p) { p.loss_scale = {.value = 8, .recorded_steps = 6}; }));
  CHECK_FALSE(refused([](auto& p) { p.loss_scale = {.value = 8, .recorded_steps = 3}; }));
}

TEST_CASE("the late verdicts are those of the steps that the loss scale does not know") {
  auto position = example().position;
  std::vector<std::uint64_t> steps;
  auto const list = [&](std::uint64_t step, bool) { steps.push_back(step); };
  for_each_late_verdict(position, list);
  CHECK(steps.empty());
  position.loss_scale = LossScaleState{.value = 8, .recorded_steps = 3};
  for_each_late_verdict(position, list);
  CHECK(steps == std::vector<std::uint64_t>{4, 5});
}

}  // namespace training_state_test
