// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/memory/place_check.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace resident_parameters_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A stage for each of five layers; two of them share a matrix.
Training training_on(std::size_t devices, std::size_t rounds = 2) {
  Training training;
  training.model = {.dense = 3, .tied = true, .empty_parameters = true};
  training.plan.devices = devices;
  training.plan.micro_batches_per_round = 3;
  training.plan.rounds = rounds;
  training.plan.resident_parameters = true;
  return training;
}

TrainingGraphs plan(Training const& training) {
  return plan_training(training,
                       RoundRobinSchedule{},
                       PriorityTransferEngine{},
                       LayerEventProtocol{},
                       OneLayerStages{});
}

/// Checkpoints of stages and of layers, saves, rounds that overlap.
std::vector<Training> kinds_of(Training const& training) {
  auto layers = training;
  layers.plan.checkpoints = Checkpoints::layers;
  auto saves = training;
  saves.plan.save_levels = {{}, {1, 0, 2}, {0, 1, 1}, {2, 2, 2}};
  auto overlapping = saves;
  overlapping.plan.overlaps_rounds = true;
  return {training, layers, saves, overlapping};
}

/// How many bytes of each block go up to each device.
std::map<std::pair<DeviceId, BlockId>, Bytes> uploaded(TrainingGraphs const& graphs,
                                                       ActionGraph const& graph) {
  std::map<std::pair<DeviceId, BlockId>, Bytes> bytes;
  for (auto const& action : graph.actions) {
    for (auto const& piece : action.pieces) {
      if (action.kind == ActionKind::upload_parameters) {
        bytes[{action.lane.device, graphs.blocks.use(piece.use).block}] += piece.bytes;
      }
    }
  }
  return bytes;
}

Bytes bytes_of(TrainingGraphs const& graphs, BlockId block) {
  Bytes bytes = 0;
  for (auto const& spec : graphs.blocks.blocks[block.index()].master) {
    bytes += spec.bytes();
  }
  return bytes;
}

std::vector<Violation> check_places(TrainingGraphs const& graphs, DeviceMemoryPlan const& memory) {
  auto const sequence = sequence_of(graphs, issue_iterations(4, 1, true));
  auto const actions = sequence.unroll();
  return verify_places(actions, SequenceOrder(actions), memory, [&](ActionGraph const& graph) {
    return std::span<StageLayout const>(&graph == &graphs.evaluation ? graphs.stages.evaluate
                                                                     : graphs.stages.train);
  });
}

}  // namespace

TEST_CASE("with room each block goes up once a call to each device that reads it") {
  for (std::size_t devices = 1; devices <= 3; ++devices) {
    for (auto const& training : kinds_of(training_on(devices))) {
      auto const graphs = plan(training);
      REQUIRE_FALSE(graphs.stages.memory.resident_parameters.empty());
      for (auto const* graph : {&graphs.call, &graphs.evaluation}) {
        auto const went_up = uploaded(graphs, *graph);
        for (auto const& action : graph->actions) {
          if (action.kind != ActionKind::forward && action.kind != ActionKind::recompute) {
            continue;  // a backward may read none
          }
          for (auto const use : action.uses) {
            auto const block = graphs.blocks.use(use).block;
            CHECK((bytes_of(graphs, block) == 0 || went_up.contains({action.lane.device, block})));
          }
        }
        for (auto const& [where, bytes] : went_up) {
          auto const whole = bytes_of(graphs, where.second);
          auto const stays = graphs.stages.memory.resident_parameters.contains(where.second);
          CHECK((stays ? bytes == whole : bytes % whole == 0));
        }
      }
      CHECK(verify(sequence_of(graphs, issue_iterations(5, 2, true))).empty());
      CHECK(check_places(graphs, graphs.stages.memory).empty());
    }
  }
}

TEST_CASE("what stays is read at its place, and stages have no room for it") {
  auto const graphs = plan(training_on(1));
  for (auto const& stage : graphs.stages.train) {
    CHECK(stage.parameter_bytes == 0);
    CHECK_FALSE(stage.reads_to_the_end);
  }
  for (auto const& action : graphs.call.actions) {
    for (auto const* list : {&action.reads, &action.writes}) {
      for (auto const& buffer : *list) {
        if (buffer.ring.kind == BufferKind::parameters) {
          CHECK(resident_block(buffer.ring).valid());
          CHECK(buffer.sequence == 0);  // one content a call
        }
      }
    }
  }
}

TEST_CASE("a stage reads its entry to the end if its last pass reads what does not stay") {
  auto const model = describe(toy_model({.dense = 2}), {2, 3});
  auto const blocks = form_blocks(model);
  Partition const partition{{{0, 2}}, {{2, 2}, {1, 1}, {0, 1}}};
  auto const reads_to_the_end = [&](ResidentBlocks const& resident) {
    auto const stages = lay_out_stages(model, blocks, partition, {}, {}, {}, resident).train;
    CHECK(stages[0].reads_to_the_end == stages[2].reads_to_the_end);  // both end with layer 1
    CHECK_FALSE(stages[3].reads_to_the_end);                          // whose backward reads none
    return stages[0].reads_to_the_end;
  };
  CHECK(reads_to_the_end({}));
  CHECK(reads_to_the_end({BlockId(0)}));
  CHECK_FALSE(reads_to_the_end({BlockId(1)}));
}

TEST_CASE("those that spare most uploads come first, those of a call's first turn last") {
  auto const model = describe(toy_model({.dense = 2}), {2, 3});
  auto const blocks = form_blocks(model);
  // Stages 0 to 6: layers 0, 1, 2 forward, the loss, layers 2, 1, 0 backward.
  Partition const partition{{{0, 1}, {1, 1}, {2, 1}}, {{3, 1}, {2, 1}, {1, 1}, {0, 1}}};
  auto const keepable = [&](std::vector<DeviceTurns> turns) {
    return detail::keepable_blocks(
        lay_out_stages(model, blocks, partition, {}, {}, std::move(turns)), blocks);
  };
  using Blocks = std::vector<BlockId>;
  auto const round = DeviceTurns{{0}, {1}, {2}, {3}, {4}, {5}, {6}};
  auto twice = round;
  twice.insert(twice.end(), round.begin(), round.end());
  CHECK(keepable({round}) == Blocks{BlockId(1), BlockId(2), BlockId(0)});
  CHECK(keepable({twice}) == Blocks{BlockId(1), BlockId(2), BlockId(3), BlockId(0)});
  CHECK(keepable({DeviceTurns{{0}, {2}, {4}, {6}}, DeviceTurns{{1}, {3}, {5}}}) ==
        Blocks{BlockId(2), BlockId(0), BlockId(1)});
  CHECK(keepable({DeviceTurns{{3}, {1}, {5}, {2}, {4}, {2}}}) == Blocks{BlockId(2), BlockId(1)});
  CHECK(keepable({DeviceTurns{{0}, {1}, {2}, {3}}, DeviceTurns{{4}, {5}, {6}}}).empty());
  CHECK(keepable({DeviceTurns{{7}, {8}, {9}, {10}}}).empty());  // an evaluation's
}

TEST_CASE("what stays is in the ledger to the byte, within every budget") {
  std::size_t some = 0;
  for (std::size_t const devices : {1U, 2U}) {
    for (auto training : kinds_of(training_on(devices))) {
      auto const all = plan(training).stages;
      training.plan.resident_parameters.reset();  // without a forecast, nothing stays
      auto const none = plan(training).stages;
      CHECK(none.memory.resident_parameters.empty());
      training.plan.resident_parameters = true;
      auto const count = [](StagePlan const& stages) {
        return stages.memory.resident_parameters.size();
      };
      auto const most = std::max(all.memory.bytes, none.memory.bytes);
      for (auto bytes = none.memory.bytes; bytes <= most; bytes += 256) {
        training.plan.device_memory = bytes;
        auto const stages = plan(training).stages;
        CHECK(stages.memory.bytes <= bytes);
        CHECK(total_bytes(stages.memory.ledger(), LedgerLine::Space::device) ==
              stages.memory.bytes);
        CHECK((bytes < all.memory.bytes || count(stages) == count(all)));
        some += count(stages) > 0 && count(stages) < count(all) ? 1 : 0;
      }
    }
  }
  CHECK(some > 0);
}

TEST_CASE("the first slot's blocks go up behind what need not wait for the call before") {
  auto const model = describe(toy_model({.dense = 2}), {2, 3});
  auto const blocks = form_blocks(model);
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneLayerStages{}};
  Partition const partition{{{0, 3}}, {{3, 1}, {2, 1}, {1, 1}, {0, 1}}};
  PlanOptions const options{.micro_batches_per_round = 3, .device_memory = 1_GiB};
  for (std::size_t const entries : {1U, 2U}) {
    auto const stages =
        lay_out_stages(model, blocks, partition, {.parameters = entries}, {}, {}, {BlockId(1)});
    std::vector<bool> stays;
    for (auto const& action : planner.streamed_graph(blocks, stages, options).actions) {
      if (action.kind == ActionKind::upload_parameters && action.slot == SlotId(0)) {
        stays.push_back(resident_block(action.writes.front().ring).valid());
        CHECK(action.gated != stays.back());
      }
    }
    REQUIRE(std::ranges::count(stays, true) == 1);
    CHECK(stays.size() > 1);
    CHECK((entries == 1 ? stays.front() : stays.back()));  // from one entry nothing goes up sooner
  }
}

TEST_CASE("verify_places finds a place that two blocks share") {
  auto const graphs = plan(training_on(1));
  auto const& memory = graphs.stages.memory;
  for (auto const& [block, place] : memory.resident_parameters) {
    if (place.bytes > 0) {
      auto shared = memory;
      for (auto& [other, moved] : shared.resident_parameters) {
        moved.offset = other == block ? 0 : moved.offset;  // where stages have theirs
      }
      CHECK_FALSE(check_places(graphs, shared).empty());
    }
  }
}

TEST_CASE("a forecast that finds uploads faster lets no parameters stay") {
  auto const model = describe(toy_model({.dense = 3}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneLayerStages{}};
  PlanOptions options{.micro_batches_per_round = 2, .rounds = 2, .device_memory = 1_GiB};
  auto const count = [&](double a_block_s) {
    return planner
        .plan_stages(model,
                     blocks,
                     costs,
                     options,
                     [&](StagePlan const& plan) {
                       return static_cast<double>(plan.memory.resident_parameters.size()) *
                              a_block_s;
                     })
        .memory.resident_parameters.size();
  };
  CHECK(count(1) == 0);
  CHECK(count(0) > 0);
  CHECK(count(-1) > 0);
  options.resident_parameters = true;
  CHECK(count(1) > 0);
  options.resident_parameters = false;
  CHECK(count(-1) == 0);
}

}  // namespace resident_parameters_test
