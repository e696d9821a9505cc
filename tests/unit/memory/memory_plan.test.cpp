// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/memory_plan.hpp>

#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace memory_plan_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("stages share a region, and each entry of the rings behind it holds the largest stage") {
  std::vector<StageLayout> stages(2);
  stages[0].parameter_bytes = 512;
  stages[1].parameter_bytes = 256;
  stages[1].gradient_bytes = 1024;
  stages[0].in_bytes = 256;
  stages[1].out_bytes = 768;
  stages[0].scratch_bytes = 2048;
  auto const plan = plan_device_memory(stages, {2, 1, 3});
  CHECK(plan.ring(BufferKind::parameters).entry_bytes == 512);
  CHECK(plan.ring(BufferKind::parameters).count == 2);
  CHECK(plan.region_bytes == 2 * 512 + 1024 + 2048);
  CHECK(plan.ring(BufferKind::activations_in).offset == plan.region_bytes);
  CHECK(plan.ring(BufferKind::activations_out).offset == plan.region_bytes + 3 * 256);
  CHECK(plan.bytes == plan.region_bytes + 3 * 256 + 3 * 768);
  CHECK(total_bytes(plan.ledger(), LedgerLine::Space::device) == plan.bytes);
}

TEST_CASE("parameters and gradients lie at the two ends of the region in turn, others in a row") {
  std::vector<StageLayout> stages(1);
  auto& stage = stages[0];
  stage.kind = StageKind::fused;
  stage.parameter_bytes = 512;
  stage.gradient_bytes = 256;
  stage.in_bytes = 768;
  auto const plan = plan_device_memory(stages, {2, 2, 2});
  stage.region = plan.places[0];
  auto const offset = [&](BufferKind kind, std::size_t acquisition) {
    return plan.entry({kind, DeviceId(0), 0}, acquisition, stage).offset;
  };
  CHECK(plan.region_bytes == 2 * (512 + 256));
  CHECK(offset(BufferKind::parameters, 4) == 0);
  CHECK(offset(BufferKind::parameters, 5) == plan.region_bytes - 512);
  CHECK(offset(BufferKind::gradients, 4) == 512);
  CHECK(offset(BufferKind::gradients, 5) == plan.region_bytes - 512 - 256);
  CHECK(offset(BufferKind::activations_in, 4) == plan.region_bytes);
  CHECK(offset(BufferKind::activations_in, 5) == plan.region_bytes + 768);
  CHECK(plan.entry({BufferKind::gradients, DeviceId(0), 0}, 5, stage).bytes == 256);
}

TEST_CASE("a ring of three entries lies in a row behind the region") {
  std::vector<StageLayout> stages(2);
  stages[0].parameter_bytes = 512;
  stages[1].parameter_bytes = 256;
  stages[1].gradient_bytes = 1024;
  stages[1].scratch_bytes = 2048;
  auto const offset = [&](DeviceMemoryPlan const& plan, BufferKind kind, std::size_t acquisition) {
    stages[1].region = plan.places[1];
    return plan.entry({kind, DeviceId(0), 0}, acquisition, stages[1]).offset;
  };
  auto const with_gradients = plan_device_memory(stages, {3, 1, 2});
  CHECK(with_gradients.region_bytes == 1024 + 2048);
  CHECK(offset(with_gradients, BufferKind::gradients, 2) == 2048);
  CHECK(offset(with_gradients, BufferKind::parameters, 5) == 1024 + 2048 + 2 * 512);
  auto const with_parameters = plan_device_memory(stages, {2, 3, 2});
  CHECK(with_parameters.region_bytes == 2 * 512 + 2048);
  CHECK(offset(with_parameters, BufferKind::gradients, 5) == 2 * 512 + 2048 + 2 * 1024);
  for (auto const& plan : {with_gradients, with_parameters}) {
    CHECK(plan.bytes ==
          plan.region_bytes + 3 * (plan.in_region(BufferKind::gradients) ? 512 : 1024));
    CHECK(total_bytes(plan.ledger(), LedgerLine::Space::device) == plan.bytes);
  }
}

TEST_CASE("where rounds overlap, forward stages have rings of their own") {
  std::vector<StageLayout> stages(2);
  stages[0].kind = StageKind::forward;
  stages[0].working_set.set_overlaps_rounds(true);
  stages[0].parameter_bytes = 512;
  stages[0].in_bytes = 256;
  stages[0].save_bytes = 1024;
  stages[1].kind = StageKind::fused;
  stages[1].parameter_bytes = 768;
  stages[1].gradient_bytes = 1024;
  stages[1].scratch_bytes = 2048;
  auto const plan = plan_device_memory(stages, {2, 1, 2, 3});
  Ring const of_forward{BufferKind::parameters, DeviceId(0), forward_ring};
  CHECK(plan.ring(BufferKind::parameters).entry_bytes == 768);
  CHECK(plan.ring(of_forward).entry_bytes == 512);
  CHECK(plan.region_bytes == 2 * 768 + 1024 + 2048);
  CHECK(plan.ring(of_forward).offset == plan.region_bytes);
  stages[0].region = plan.places[0];
  CHECK(plan.entry(of_forward, 3, stages[0]).offset == plan.region_bytes + 512);
  CHECK(plan.ring(Ring{BufferKind::parameters, DeviceId(0), 0}).offset == 0);
  CHECK(plan.ring(BufferKind::saves).count == 0);
  CHECK(plan.ring(Ring{BufferKind::saves, DeviceId(0), forward_ring}).count == 3);
  CHECK(plan.bytes == 2 * 768 + 1024 + 2 * 512 + 2 * 256 + 3 * 1024 + 2048);
  CHECK(total_bytes(plan.ledger(), LedgerLine::Space::device) == plan.bytes);
}

TEST_CASE("a device needs exactly the budget of a stage to run only that stage") {
  auto const model = describe(toy_model({.dense = 2, .drops = true}), {2, 3});
  auto const blocks = form_blocks(model);
  Buffering const buffering{2, 1, 2, 3};
  for (std::size_t offloaded = 0; offloaded <= 4; offloaded += 2) {
    auto set = offloaded > 0 ? spread_saves(model, offloaded, 4) : WorkingSet{};
    set.set_overlaps_rounds(offloaded == 4);
    StageBudget const sizes(model, blocks, set);
    for (std::size_t first = 0; first < model.size(); ++first) {
      for (std::size_t count = 1; first + count < model.size(); ++count) {
        LayerRange const range{first, count};
        for (auto const kind : {StageKind::forward, StageKind::backward}) {
          auto const none = [](std::size_t) { return false; };  // no backward stage begins inside
          auto const layout = lay_out_stage(model, blocks, kind, range, none, set);
          auto const direction =
              kind == StageKind::forward ? StageDirection::forward : StageDirection::backward;
          CHECK(sizes.bytes(direction, range, buffering) ==
                plan_device_memory(std::vector{layout}, buffering).bytes);
        }
      }
    }
  }
  StageBudget const sizes(model, blocks);
  auto const [layer, bytes] = sizes.largest_layer(buffering);
  for (std::size_t i = 0; i < model.size(); ++i) {
    CHECK(bytes >= sizes.bytes(StageDirection::backward, {i, 1}, buffering));
  }
  CHECK(bytes == sizes.bytes(StageDirection::backward, {layer, 1}, buffering));
}

}  // namespace memory_plan_test
