// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/host_memory_plan.hpp>

#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace host_memory_plan_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::size_t micro_batches = 4;

/// Three layers forward and backward, and the loss; backward stages begin behind layer 0 and
/// layer 2.
HostMemoryPlan planned(ModelDescription const& model,
                       WorkingSet const& set,
                       StateType type = StateType::fp32) {
  auto const blocks = form_blocks(model, true, type);
  auto const is_checkpoint = [](std::size_t boundary) { return boundary != 1; };
  std::vector<StageLayout> stages;
  for (auto const& [kind, range] : {std::pair(StageKind::forward, LayerRange{0, 3}),
                                    std::pair(StageKind::fused, LayerRange{3, 1}),
                                    std::pair(StageKind::backward, LayerRange{1, 2}),
                                    std::pair(StageKind::backward, LayerRange{0, 1})}) {
    stages.push_back(lay_out_stage(model, blocks, kind, range, is_checkpoint, set));
  }
  return plan_host_memory(
      model, blocks, {}, stages, {.micro_batches_per_round = micro_batches, .rounds = 2});
}

Bytes line_of(HostMemoryPlan const& plan, std::string const& name) {
  Bytes bytes = 0;
  for (auto const& line : plan.ledger) {
    bytes += line.name == name ? line.bytes : 0;
  }
  return bytes;
}

}  // namespace

TEST_CASE("a rank has room for one block's gradients of all others, all uses") {
  auto const blocks =
      form_blocks(describe(toy_model({.dense = 3, .dense_tied = true}), {2, 3}), true);
  Bytes most = 0;
  for (auto const& block : blocks.blocks) {
    most = std::max(most, block.uses.size() * block.master.bytes());
  }
  CHECK(received_gradient_bytes(blocks, 1) == 0);
  CHECK(received_gradient_bytes(blocks, 3) == 2 * most);
  auto frozen = blocks;
  for (auto& block : frozen.blocks) {
    block.frozen = true;
  }
  CHECK(received_gradient_bytes(frozen, 3) == 0);
}

TEST_CASE("ranks that share blocks hold a part of all but master copies") {
  auto const model =
      describe(toy_model({.types = {256, DType::bf16, DType::bf16}, .dense = 3}), {2, 3});
  auto const plan_of = [&](std::size_t ranks) {
    auto blocks = form_blocks(model, true);
    if (ranks > 1) {
      shard_blocks(blocks, 1, std::vector(ranks, 1.0));
    }
    std::vector<StageLayout> const stages{lay_out_stage(
        model, blocks, StageKind::fused, {0, model.size()}, [](std::size_t) { return true; })};
    auto const plan = plan_host_memory(
        model, blocks, {}, stages, {.state_arrays = 2, .master_copies = 2, .ranks = ranks});
    return std::pair(plan, blocks);
  };
  auto const [alone, all] = plan_of(1);
  auto const parameters = static_cast<double>(all.parameter_count());
  for (std::size_t const ranks : {1, 2, 4}) {
    auto const [plan, blocks] = plan_of(ranks);
    CHECK(line_of(plan, "master copies") == line_of(alone, "master copies"));
    // Two bf16 masters; fp32 weights, two states and a sum.
    auto const expected = 4 + 16.0 / static_cast<double>(ranks);
    CHECK(static_cast<double>(plan.state_bytes) / parameters ==
          doctest::Approx(expected).epsilon(0.02));
    // The gradients that come in go with the rank's own share.
    Bytes most = 0;
    for (auto const& block : blocks.blocks) {
      most = std::max(most, (ranks - 1) * block.own().bytes(block.master).size());
    }
    CHECK(line_of(plan, "gradients of other ranks") == most);
  }
}

TEST_CASE("the ledger names what the host's rings take") {
  auto const model = describe(toy_model({.dense = 2}), {2, 3});
  auto const boundary = align_up(model.layers[0].boundary.bytes());
  auto const stages = planned(model, {});
  CHECK(line_of(stages, "checkpoints") == 2 * 2 * micro_batches * boundary);
  CHECK(line_of(stages, "offloaded saves") == 0);
  auto const layers = planned(model, keep_levels(model, {{}, {0, 1, 2, 0}}, micro_batches));
  CHECK(line_of(layers, "checkpoints") == 3 * micro_batches * boundary);
  auto const& levels = model.layers[1].save_levels;
  REQUIRE(levels.size() == 3);
  CHECK(line_of(layers, "offloaded saves") == align_up(levels[1]) + align_up(levels[2]));
  CHECK(layers.working_set.count(1) == 2);
  for (auto const* plan : {&stages, &layers}) {  // four gradients of a micro-batch, in either case
    CHECK(line_of(*plan, "boundary gradients") == 4 * micro_batches * boundary);
  }
}

TEST_CASE("sums of gradients cost what their type does, and landings of stages share memory") {
  auto const model =
      describe(toy_model({.types = {4, DType::bf16, DType::bf16}, .dense = 2}), {2, 3});
  for (auto const type : {StateType::fp32, StateType::declared}) {
    auto const blocks = form_blocks(model, true, type);
    Bytes sums = 0;
    Bytes landings = 0;
    for (auto const& block : blocks.blocks) {
      sums += type == StateType::fp32 ? block.gradient.bytes() : block.master.bytes();
      landings += block.master.bytes();
    }
    auto const plan = planned(model, {}, type);
    CHECK(line_of(plan, "gradients") == sums);
    CHECK(plan.state_bytes ==
          sums + line_of(plan, "master copies") + line_of(plan, "optimizer copies and states"));
    CHECK(line_of(plan, "landings of gradients") == plan.landings.bytes());
    CHECK(plan.landings.bytes() < landings);
  }
}

TEST_CASE("the ledger counts what each of two copies, buffers and calls in flight takes") {
  // A tensor of three layers is one block with one master copy, and lands once for each of them.
  auto const model = describe(toy_model({.types = {64, DType::bf16, DType::bf16},
                                         .dense = 3,
                                         .dense_tied = true,
                                         .frozen_input = true}),
                              {2, 3});
  auto const batch = lay_out_batch(model);
  auto const frozen = align_up(2 * 3 * 64);
  auto const shared = align_up(2 * 64 * 64);
  // In their own type and in fp32: the shared tensor, a bias of each of its layers, the loss's.
  auto trained = shared + 3 * align_up(2 * 64);
  auto wide = align_up(4 * 64 * 64) + 3 * align_up(4 * 64);
  for (auto const& spec : model.layers.back().parameters) {
    trained += align_up(2 * spec.tensor.shape.size());
    wide += align_up(4 * spec.tensor.shape.size());
  }
  for (auto const type : {StateType::fp32, StateType::declared}) {
    auto const blocks = form_blocks(model, false, type);
    std::vector<StageLayout> stages;
    auto const add = [&](StageKind kind, LayerRange range) {
      stages.push_back(lay_out_stage(model, blocks, kind, range, [](std::size_t) { return true; }));
    };
    add(StageKind::forward, {0, 4});
    add(StageKind::fused, {4, 1});
    for (std::size_t layer = 4; layer-- > 0;) {
      add(StageKind::backward, {layer, 1});
    }
    auto const plan = plan_host_memory(model,
                                       blocks,
                                       batch,
                                       stages,
                                       {.state_arrays = 2,
                                        .state_type = type,
                                        .master_copies = 2,
                                        .gradient_buffers = 2,
                                        .micro_batches_per_round = 4,
                                        .rounds = 3,
                                        .devices = 1,
                                        .calls_in_flight = 2,
                                        .update_scratch = 1000});
    auto const fp32 = type == StateType::fp32;
    CHECK(line_of(plan, "master copies") == frozen + 2 * trained);
    CHECK(line_of(plan, "optimizer copies and states") == (fp32 ? 3 * wide : 2 * trained));
    // The shared tensor's gradient is a sum, here in fp32 if states are.
    auto const sums = trained + (fp32 ? align_up(4 * 64 * 64) - shared : 0);
    CHECK(line_of(plan, "gradients") == 2 * sums);
    CHECK(line_of(plan, "landings of gradients") == 3 * shared);
    CHECK(line_of(plan, "parameters updated as a whole") == 1000);
    // Two calls of three rounds, and the round that is on its way; 4 micro-batches a round.
    CHECK(line_of(plan, "batches") == batch.tensors.bytes() * 4 * (3 * 2 + 1));
    CHECK(line_of(plan, "losses and results") ==
          256 * (4 * 3 * 2 + 4) + 4 * model.layers.back().results.bytes());
  }
}

TEST_CASE("16-bit floats need fp32 weights beside them, bf16 does not") {
  for (auto const type : {DType::f16, DType::bf16}) {
    auto const blocks = form_blocks(describe(toy_model({.types = {4, type, type}}), {2, 3}));
    require_state_type(blocks, StateType::fp32);
    if (type == DType::bf16) {
      require_state_type(blocks, StateType::declared);
    } else {
      CHECK(error_of([&] { require_state_type(blocks, StateType::declared); }).code() ==
            Errc::invalid_argument);
    }
  }
}

}  // namespace host_memory_plan_test
