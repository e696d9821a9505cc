// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/live_bytes.hpp>

#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/toy_model.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace live_bytes_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A model of three layers with bf16 parameters; sums of gradients take twice their bytes.
ModelDescription three_layers() {
  std::vector<LayerBytes> layers(3);
  layers[0] = {
      .parameter_bytes = 1024, .boundary_bytes = 256, .saved_bytes = 768, .workspace_bytes = 300};
  layers[1] = {
      .parameter_bytes = 512, .boundary_bytes = 256, .saved_bytes = 1280, .workspace_bytes = 100};
  layers[2] = {.parameter_bytes = 256};
  auto model = describe_bytes(layers);
  model.layers[1].save_levels = {0, 512, 1280};
  return model;
}

/// A stage in a slot of a device, with actions at times made by hand.
struct TimedSlot {
  TimedSlot(StageKind kind, LayerRange range, WorkingSet const& set = {})
      : stages{lay_out_stage(model, blocks, kind, range, [](std::size_t) { return false; }, set)} {}

  struct Times {
    double start_s;
    double end_s;
  };

  void run(ActionKind kind, LayerId layer, std::size_t micro_batch, Times times) {
    auto action = made(kind, LaneKind::compute);
    action.layer = layer;
    action.micro_batch = MicroBatchId(micro_batch);
    action.hands_on_output = stages[0].kind != StageKind::backward;
    add(action, times);
  }
  void copy(ActionKind kind, LaneKind lane, LayerId layer, std::size_t micro_batch, Times times) {
    auto action = made(kind, lane);
    action.layer = layer;
    action.micro_batch = MicroBatchId(micro_batch);
    add(action, times);
  }
  /// Copies all parameters, or gradients, of a use.
  void copy_use(ActionKind kind, LaneKind lane, BlockUseId use, Times times) {
    auto action = made(kind, lane);
    action.pieces = {{use, 0, 0, blocks.block_of(use).master[0].bytes()}};
    add(action, times);
  }

  [[nodiscard]] LiveBytes live() const {
    auto const devices = live_bytes(timeline, graph, model, blocks, stages);
    REQUIRE(devices.size() == 1);
    return devices[0];
  }

  ModelDescription model = three_layers();
  ParameterBlocks blocks = form_blocks(model);
  std::vector<StageLayout> stages;
  ActionGraph graph;
  Timeline timeline{1, {}};

 private:
  static Action made(ActionKind kind, LaneKind lane) {
    Action action;
    action.kind = kind;
    action.lane = {lane, DeviceId(0)};
    action.slot = SlotId(0);
    action.stage = StageId(0);
    action.round = RoundId(0);
    return action;
  }
  void add(Action const& action, Times times) {
    ActionId const id(graph.actions.size());
    graph.actions.push_back(action);
    timeline.entries.push_back(
        timeline_entry(action, 0, id, action.lane, times.start_s, times.end_s));
  }
};

constexpr LayerId first{0};
constexpr LayerId second{1};
constexpr LayerId third{2};

/// What \p plan has for each class. Parameters, gradients and scratch share a region.
LiveClasses planned_of(StagePlan const& plan) {
  auto const& memory = plan.memory;
  LiveClasses planned{};
  for (std::size_t i = 0; i < device_ring_count; ++i) {
    planned[i] = memory.rings[i].entry_bytes * memory.rings[i].count +
                 memory.forward_rings[i].entry_bytes * memory.forward_rings[i].count;
  }
  planned[static_cast<std::size_t>(BufferKind::parameters)] += memory.resident_parameter_bytes();
  for (auto const& stage : plan.train) {
    planned[device_ring_count] = std::max(planned[device_ring_count], stage.scratch_bytes);
  }
  for (auto const kind : ResidentLayout::kinds) {
    auto const& room = memory.resident.of(kind);
    planned.back() += room.entry_bytes * room.count;
  }
  return planned;
}

}  // namespace

TEST_CASE("a fused stage holds each tensor from its first use to its last") {
  using enum ActionKind;
  TimedSlot slot(StageKind::fused, {1, 2});
  slot.copy_use(upload_parameters, LaneKind::parameter_up, BlockUseId(1), {0, 1});
  slot.copy_use(upload_parameters, LaneKind::parameter_up, BlockUseId(2), {1, 3});
  for (std::size_t m = 0; m < 2; ++m) {
    auto const t = m == 0 ? 2.0 : 8.0;
    slot.copy(upload_activation, LaneKind::activation_up, {}, m, {t - 1, t});
    slot.run(recompute, second, m, {t, t + 1});
    slot.run(recompute, third, m, {t + 1, t + 2});
    slot.run(backward, third, m, {t + 2, t + 3});
    slot.run(backward, second, m, {t + 3, t + 5});
    slot.copy(download_activation, LaneKind::activation_down, {}, m, {t + 5, t + 6});
  }
  slot.copy_use(download_gradients, LaneKind::gradient_down, BlockUseId(2), {11, 12});
  slot.copy_use(download_gradients, LaneKind::gradient_down, BlockUseId(1), {13, 14});
  auto const live = slot.live();
  // Parameters: 512 in [0, 13), 256 in [1, 11).
  // Gradients: sums, 512 in [4, 11) and 1024 in [5, 13); rounded, 256 in [10, 12) and 512 in
  // [11, 14).
  // In: the input, 256 in [1, 7) and [7, 13). Out: its gradient, 256 in [5, 8) and [11, 14), and
  // the loss, 8 in [3, 8) and [9, 14).
  // Scratch, from t = 2 and 8 on: saves, 1280 in [t, t + 5); the inner boundary, 256 in [t, t + 3);
  // its gradient, 256 in [t + 2, t + 5); workspace, 100 in [t, t + 1) and [t + 3, t + 5).
  CHECK(live.most == LiveClasses{768, 1792, 256, 264, 0, 1792});
  CHECK(live.at_fullest == LiveClasses{768, 1792, 256, 8, 0, 1792});  // in [10, 11)
  CHECK(live.total() == 4616);
}

TEST_CASE("a forward stage holds saves while it makes them, and what the host keeps of them") {
  using enum ActionKind;
  auto const set = keep_levels(three_layers(), {{0}, {1}}, 1);
  TimedSlot slot(StageKind::forward, {0, 2}, set);
  slot.run(forward, first, 0, {0, 1});
  slot.run(recompute, second, 0, {1, 2});
  slot.copy(download_activation, LaneKind::activation_down, {}, 0, {2, 3});
  slot.copy(download_save, LaneKind::save_down, second, 0, {3, 4});
  auto const live = slot.live();
  // Out: boundaries, 256 in [0, 3) and [1, 3). Saves: 512 in [1, 4). Scratch: workspace, 300 in
  // [0, 1) and 100 in [1, 2); the rest of the saves, 768 in [1, 2).
  CHECK(live.most == LiveClasses{0, 0, 0, 512, 512, 868});
  CHECK(live.at_fullest == live.most);
}

TEST_CASE("a backward stage holds the saves of one layer, and what comes back of them") {
  using enum ActionKind;
  auto const set = keep_levels(three_layers(), {{0}, {1}}, 1);
  TimedSlot slot(StageKind::backward, {0, 2}, set);
  slot.copy_use(upload_parameters, LaneKind::parameter_up, BlockUseId(0), {0, 1});
  slot.copy_use(upload_parameters, LaneKind::parameter_up, BlockUseId(1), {1, 2});
  slot.copy(upload_activation, LaneKind::activation_up, {}, 0, {0, 1});
  slot.copy(upload_gradient, LaneKind::activation_up, {}, 0, {1, 2});
  slot.copy(upload_save, LaneKind::save_up, second, 0, {0, 2});
  slot.run(recompute, second, 0, {2, 3});
  slot.run(backward, second, 0, {3, 5});
  slot.run(recompute, first, 0, {5, 6});
  slot.run(backward, first, 0, {6, 8});
  slot.copy_use(download_gradients, LaneKind::gradient_down, BlockUseId(1), {5, 6});
  slot.copy_use(download_gradients, LaneKind::gradient_down, BlockUseId(0), {8, 9});
  auto const live = slot.live();
  // Parameters: 1024 in [0, 8), 512 in [1, 5).
  // Gradients: sums, 1024 in [3, 5) and 2048 in [6, 8); rounded, 512 in [3, 6) and 1024 in [6, 9).
  // In: the second layer's input, 256 in [0, 5), and the output's gradient, 256 in [1, 5).
  // Saves: 512 in [0, 5).
  // Scratch: the rest of the second layer's saves, 768 in [2, 5); the first one's, 768 in [5, 8);
  // the gradient between them, 256 in [3, 8); workspace, 100 in [2, 5) and 300 in [5, 8).
  CHECK(live.most == LiveClasses{1536, 3072, 512, 0, 512, 1324});
  CHECK(live.at_fullest == LiveClasses{1024, 3072, 0, 0, 0, 1324});  // in [6, 8)
}

TEST_CASE("a timeline of another graph is refused") {
  TimedSlot slot(StageKind::forward, {0, 2});
  slot.run(ActionKind::forward, first, 0, {0, 1});
  slot.graph.actions[0].kind = ActionKind::backward;
  CHECK(error_of([&] { (void)slot.live(); }).code() == Errc::invalid_argument);
  slot.graph.actions.clear();
  CHECK(error_of([&] { (void)slot.live(); }).code() == Errc::invalid_argument);
}

std::vector<Slot> slots_of(std::span<StageLayout const> stages, PlanOptions const& options) {
  ScheduleShape shape{.devices = options.devices,
                      .micro_batches_per_round = options.micro_batches_per_round,
                      .rounds = options.rounds,
                      .overlaps_rounds = stages.front().working_set.overlaps_rounds()};
  for (auto const& stage : stages) {
    ++(stage.kind == StageKind::forward || stage.kind == StageKind::evaluate
           ? shape.forward_stages
           : shape.backward_stages);
  }
  if (shape.backward_stages == 0) {
    shape.rounds = 1;
    shape.overlaps_rounds = false;
  }
  return order_slots(shape, RoundRobinSchedule{}.tasks(shape));
}

/// Checks plans of \p model, which has six layers.
void check_live_bytes(ModelDescription const& model) {
  auto const blocks = form_blocks(model, true);
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneStage{}};
  Partition const one_stage{{}, {{0, 6}}};
  Partition const five_stages{{{0, 2}, {2, 2}}, {{4, 2}, {2, 2}, {0, 2}}};
  constexpr std::size_t micro_batches = 4;
  auto const spread = spread_saves(model, 2, micro_batches);
  auto overlapping = spread;
  overlapping.set_overlaps_rounds(true);
  struct Case {
    Partition const& partition;
    WorkingSet set;
    std::size_t rounds;
    bool resident = false;
    bool peers = false;
    ResidentBlocks blocks{};
  };
  ResidentBlocks const some{BlockId(0), BlockId(1)};
  for (auto const& [partition, set, rounds, resident, peers, kept_blocks] :
       {Case{one_stage, {}, 2},
        Case{five_stages, {}, 1},
        Case{five_stages, {}, 2, true},
        Case{five_stages, spread, 2},
        Case{five_stages, spread, 2, true},
        Case{five_stages, overlapping, 3},
        Case{five_stages, overlapping, 3, true},
        Case{five_stages, spread, 2, true, true},
        Case{five_stages, spread, 2, false, false, some},
        Case{five_stages, overlapping, 3, true, false, some}}) {
    for (std::size_t devices = 1; devices < 3; ++devices) {
      for (auto const buffering : {Buffering{1, 1, 1, 1}, Buffering{2, 1, 2, 3}}) {
        PlanOptions const plan_options{.devices = devices,
                                       .micro_batches_per_round = micro_batches,
                                       .rounds = rounds,
                                       .device_memory = 1_GiB,
                                       .resident_boundaries = resident,
                                       .reaches_peers = peers,
                                       .peer_boundaries = peers};
        auto stages = lay_out_stages(model, blocks, partition, buffering, set, {}, kept_blocks);
        if (resident) {
          stages = detail::keep_resident({stages},
                                         slots_of(stages.train, plan_options),
                                         slots_of(stages.evaluate, plan_options),
                                         plan_options,
                                         {})
                       .plan;
          REQUIRE((!stages.resident.empty() || (devices == 2 && !peers)));
        }
        auto const call = planner.streamed_graph(blocks, stages, plan_options);
        SimulationOptions options;
        options.compute.layers.assign(model.size(), LayerCost{1, 2});
        options.link.upload_bytes_per_second = 1e3;  // slow: copies are under way for long
        options.link.download_bytes_per_second = 1e3;
        GraphSequence sequence(devices);
        sequence.add(call).add(call).add(call);
        auto const timeline = simulate(sequence, options).timeline;
        auto const planned = planned_of(stages);
        auto const parameters = static_cast<std::size_t>(BufferKind::parameters);
        auto const gradients = static_cast<std::size_t>(BufferKind::gradients);
        auto const& of_forward = stages.memory.forward_rings[parameters];
        for (auto const& live : live_bytes(timeline, call, model, blocks, stages.train)) {
          CAPTURE(devices);
          CAPTURE(rounds);
          CAPTURE(buffering.parameters);
          CHECK(live.total() > stages.memory.bytes / 2);
          CHECK(live.at_fullest[parameters] + live.at_fullest[gradients] +
                    live.at_fullest[device_ring_count] <=
                stages.memory.region_bytes + of_forward.entry_bytes * of_forward.count +
                    stages.memory.resident_parameter_bytes());
          CHECK((live.most.back() > 0) == !stages.resident.empty());
          if (resident && devices == 1) {  // all stay, so only losses go down
            auto const out = static_cast<std::size_t>(BufferKind::activations_out);
            auto const& fused = stages.train[partition.forward.size()];
            CHECK(live.most[out] <= fused.loss.bytes * buffering.activations);
          }
          for (std::size_t i = 0; i < planned.size(); ++i) {
            CAPTURE(i);
            CHECK(live.at_fullest[i] <= live.most[i]);
            CHECK(live.most[i] <= planned[i]);
          }
        }
      }
    }
  }
}

TEST_CASE("no plan has less than what is live, whatever the entries and what the host keeps") {
  ToyTypes const types{.width = 64, .parameter = DType::bf16, .boundary = DType::bf16};
  check_live_bytes(describe(toy_model({.types = types, .dense = 4}), {2, 3}));
}

TEST_CASE("no plan has less than what is live where tensors go past layers") {
  ToyTypes const types{.width = 64, .parameter = DType::bf16, .boundary = DType::bf16};
  ToyDense const dense{types};
  Sequential const model{
      ToyInput{types}, skip(fork(dense), repeat(2, dense), ToyJoin{types}), ToyLoss{types}};
  check_live_bytes(describe(model, {2, 3}));
}

}  // namespace live_bytes_test
