// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/layer_calls.hpp>

#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace layer_calls_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// Whether \p tensors are those of \p table, on \p device.
bool fit(PlannedCall const& test,
         DeviceId device,
         std::vector<DeviceTensor> const& tensors,
         TensorTable const& table) {
  bool good = tensors.size() == table.size();
  for (std::size_t t = 0; good && t < table.size(); ++t) {
    good = tensors[t].shape() == table[t].shape && tensors[t].dtype() == table[t].dtype &&
           test.in_arena(device, {tensors[t].device_pointer(), tensors[t].size_bytes()});
  }
  return good;
}

}  // namespace

TEST_CASE("a forward gets the tensors that its layer declares") {
  PlannedCall test;
  LayerCalls const calls(test.places, test.plan.blocks);
  PreparedLayer layer;
  test.for_each_device_action([&](DeviceAction const& here) {
    bool const saves = here.action.kind == ActionKind::recompute;
    if (!saves && here.action.kind != ActionKind::forward) {
      return;
    }
    calls.prepare_forward(here, layer);
    auto const& facts = here.facts(here.action.layer.index());
    CHECK(fit(test, here.device, layer.tensors.inputs, facts.input));
    CHECK(fit(test, here.device, layer.tensors.outputs, facts.boundary));
    CHECK(fit(test, here.device, layer.tensors.side_inputs, facts.side_inputs));
    CHECK(layer.tensors.parameters.size() == facts.parameters.size());
    CHECK(layer.tensors.saved.size() == (saves ? facts.footprint.saved_bytes : 0));
    CHECK(layer.tensors.workspace.size() >= facts.footprint.workspace_bytes);
    CHECK(layer.tensors.loss.size() == (facts.is_loss ? 1 : 0));
    CHECK(layer.tensors.results.empty());
    CHECK(layer.call.saving == saves);
    CHECK(layer.call.gradient_scale == 0.25);
    CHECK(layer.call.random.micro_batch == here.micro_batch());
    CHECK(layer.zeroed.empty());
    CHECK(layer.rounded.empty());
  });
}

TEST_CASE("only a recomputation that ends a stage has an output that nobody reads") {
  PlannedCall test;
  LayerCalls const calls(test.places, test.plan.blocks);
  PreparedLayer layer;
  std::size_t ends = 0;
  test.for_each_device_action([&](DeviceAction const& here) {
    if (here.action.kind != ActionKind::forward && here.action.kind != ActionKind::recompute) {
      return;
    }
    calls.prepare_forward(here, layer);
    auto const& stage = here.stage();
    bool const ends_stage = here.action.layer.index() + 1 == stage.range.end();
    CHECK(layer.call.wants_output == !(stage.kind == StageKind::backward && ends_stage));
    ends += layer.call.wants_output ? 0 : 1;
  });
  CHECK(ends > 0);
}

TEST_CASE("what the host keeps lies apart from the rest, in an entry of saves") {
  PlannedCall test({{}, {0, 1}, {1, 2}});
  LayerCalls const calls(test.places, test.plan.blocks);
  PreparedLayer layer;
  std::size_t found = 0;
  test.for_each_device_action([&](DeviceAction const& here) {
    auto const kind = here.action.kind;
    if (here.stage().kind == StageKind::fused ||
        (kind != ActionKind::recompute && kind != ActionKind::backward)) {
      return;
    }
    auto const& facts = here.facts(here.action.layer.index());
    auto const level = test.plan.host.working_set.level(here.action.layer.index(),
                                                        here.action.micro_batch.index());
    auto const kept = facts.save_levels[level];
    if (kind == ActionKind::recompute) {
      calls.prepare_forward(here, layer);
      auto const is_replay = here.stage().kind == StageKind::backward;
      CHECK(layer.call.found_level == (is_replay ? level : 0));
      CHECK(layer.call.wants_output == !is_replay);
      found += layer.call.found_level;
    } else {
      calls.prepare_backward(here, layer);
    }
    CHECK(layer.tensors.kept.size() == kept);
    CHECK(layer.tensors.saved.size() == facts.footprint.saved_bytes - kept);
    for (auto const& part : {layer.tensors.kept, layer.tensors.saved}) {
      CHECK((part.empty() || test.in_arena(here.device, part)));
    }
  });
  CHECK(found == 2);  // two replays from level 1; level 2 needs none
}

TEST_CASE("gradients begin with zeros in a slot's first backward, and are rounded in its last") {
  PlannedCall test;
  LayerCalls const calls(test.places, test.plan.blocks);
  PreparedLayer layer;
  std::size_t zeroed = 0;
  std::size_t rounded = 0;
  test.for_each_device_action([&](DeviceAction const& here) {
    if (here.action.kind != ActionKind::backward) {
      return;
    }
    calls.prepare_backward(here, layer);
    auto const& facts = here.facts(here.action.layer.index());
    CHECK(layer.tensors.parameters.size() == facts.parameters.size());
    for (auto const& parameter : layer.tensors.parameters) {
      CHECK(parameter.present() == facts.backward_reads_parameters);
    }
    CHECK(layer.tensors.parameter_gradients.size() == facts.parameters.size());
    CHECK(layer.tensors.saved.size() == facts.footprint.saved_bytes);
    CHECK(layer.tensors.input_gradients.size() ==
          (here.action.layer == LayerId(0) ? 0 : facts.input.size()));
    CHECK(layer.zeroed.empty() == (!here.action.first || facts.parameters.empty()));
    CHECK(layer.rounded.empty() == (!here.action.last || facts.parameters.empty()));
    for (auto const& [to, from] : layer.rounded) {
      CHECK(to.dtype() == DType::bf16);
      CHECK(to.size() == from.size());
    }
    zeroed += layer.zeroed.size();
    rounded += layer.rounded.size();
  });
  CHECK(zeroed == test.plan.blocks.uses.size());
  CHECK(rounded >= zeroed);
}

}  // namespace layer_calls_test
