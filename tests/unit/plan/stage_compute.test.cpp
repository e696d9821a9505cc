// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/stage_compute.hpp>

#include <support/small_call.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace stage_compute_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::size_t backward_stage = 3;  // layers 1 and 2
using Step = std::pair<ActionKind, std::size_t>;

/// An action of slot \p slot on a lane of its device.
ActionId add_copy(detail::CallContext& call, std::size_t slot, ActionKind kind, LaneKind lane) {
  return call.graph.add(call.make(SlotId(slot), kind, lane, 0));
}

}  // namespace

TEST_CASE("a micro-batch runs forward through its stage, and backward stages also run it back") {
  SmallCall const small(1, 2);
  auto const input = small.input();
  for (auto const& [slot, wanted] : std::vector<std::pair<std::size_t, std::vector<Step>>>{
           {0, {{ActionKind::forward, 0}, {ActionKind::forward, 1}}},
           {2, {{ActionKind::recompute, 3}, {ActionKind::backward, 3}}},
           {backward_stage,
            {{ActionKind::recompute, 1},
             {ActionKind::recompute, 2},
             {ActionKind::backward, 2},
             {ActionKind::backward, 1}}}}) {
    detail::CallContext call(input);
    detail::SaveCopies saves(call);
    detail::StageCompute(call, saves).add(SlotId(slot), 1);
    auto const& work = call.work[slot];
    CHECK(work.last_compute[1] == ActionId(wanted.size() - 1));
    CHECK_FALSE(work.last_compute[0].valid());
    auto const graph = std::move(call.graph).finish(0);
    REQUIRE(graph.actions.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      auto const& action = graph.actions[i];
      CHECK(action.kind == wanted[i].first);
      CHECK(action.layer == LayerId(wanted[i].second));
      CHECK(action.uses == small.blocks().layer_uses[wanted[i].second]);
      CHECK_FALSE(action.first);
      CHECK(action.last);
    }
  }
}

TEST_CASE("compute waits for the uploads of activation, gradient and parameters") {
  SmallCall const small(1, 2);
  auto const input = small.input();
  detail::CallContext call(input);
  auto& work = call.work[backward_stage];
  auto const activation =
      add_copy(call, backward_stage, ActionKind::upload_activation, LaneKind::activation_up);
  auto const gradient =
      add_copy(call, backward_stage, ActionKind::upload_gradient, LaneKind::activation_up);
  auto const parameters =
      add_copy(call, backward_stage, ActionKind::upload_parameters, LaneKind::parameter_up);
  work.activation_up = {activation, activation};
  work.gradient_up = {gradient, gradient};
  work.uploaded[small.blocks().layer_uses[2].front().index()] = parameters;
  detail::SaveCopies saves(call);
  detail::StageCompute compute(call, saves);
  compute.add(SlotId(backward_stage), 0);
  compute.add(SlotId(backward_stage), 1);
  auto const actions = std::move(call.graph).finish(0).actions;
  using Ids = std::vector<ActionId>;
  REQUIRE(actions.size() == 3 + 2 * 4);
  CHECK(actions[3].waits == Ids{activation});  // layer 1
  CHECK(actions[4].waits == Ids{parameters});  // layer 2
  CHECK(actions[5].waits == Ids{gradient, parameters});
  CHECK(actions[6].waits.empty());
  CHECK(actions[7].waits == Ids{activation});
  CHECK(actions[8].waits.empty());  // the first micro-batch has already waited for the parameters
  CHECK(actions[9].waits == Ids{gradient});
}

TEST_CASE("a slot has one gradient entry, acquired by its first backward that trains") {
  for (std::size_t frozen = 0; frozen <= 2; ++frozen) {
    SmallCall const small(1, 2, 1, {}, {.dense = 2, .frozen_dense = frozen});
    auto const input = small.input();
    detail::CallContext call(input);
    detail::SaveCopies saves(call);
    detail::StageCompute compute(call, saves);
    compute.add(SlotId(backward_stage), 0);
    auto const first = call.work[backward_stage].gradients;
    CHECK(first.has_value() == (frozen < 2));
    compute.add(SlotId(backward_stage), 1);
    CHECK(call.work[backward_stage].gradients == first);
    for (auto const& action : actions_of(std::move(call), ActionKind::backward)) {
      auto const trains = action.layer.index() > frozen;  // layers 1 and 2 are dense
      CHECK((find_buffer(action, BufferKind::gradients) != nullptr) == trains);
    }
  }
}

TEST_CASE("gradients are complete after the backward of the last micro-batch") {
  SmallCall const small(1, 3);
  auto const input = small.input();
  detail::CallContext call(input);
  detail::SaveCopies saves(call);
  detail::StageCompute compute(call, saves);
  auto const& last = call.work[backward_stage].last_backward;
  auto const is_valid = [](ActionId id) { return id.valid(); };
  for (std::size_t m = 0; m < 3; ++m) {
    CHECK(std::ranges::none_of(last, is_valid));
    compute.add(SlotId(backward_stage), m);
  }
  CHECK(std::ranges::count_if(last, is_valid) == 2);
  for (std::size_t layer = 0; layer < last.size(); ++layer) {
    if (last[layer].valid()) {
      auto const& action = call.graph[last[layer]];
      CHECK(action.kind == ActionKind::backward);
      CHECK(action.layer == LayerId(layer));
      CHECK(action.micro_batch == MicroBatchId(2));
    }
  }
}

}  // namespace stage_compute_test
