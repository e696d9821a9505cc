// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/place_check.hpp>

#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace place_check_test {

using namespace roundpipe;
using namespace roundpipe::test;

Training training_on(std::size_t devices, Bytes device_memory) {
  Training training;
  training.model.dense = 4;
  training.plan.devices = devices;
  training.plan.micro_batches_per_round = 3;
  training.plan.device_memory = device_memory;
  return training;
}

template <class Partitioner>
TrainingGraphs plan(Training const& training, Partitioner const& partitioner) {
  return plan_training(
      training, RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, partitioner);
}
TrainingGraphs plan(std::size_t devices, Bytes device_memory) {
  return plan(training_on(devices, device_memory), Partitioner{});
}

std::vector<Violation> violations_of(TrainingGraphs const& graphs) {
  auto const sequence = training_sequence(
      {graphs.call, graphs.step, graphs.flush, graphs.evaluation}, graphs.devices);
  auto const actions = sequence.unroll();
  auto const stages_of = [&](ActionGraph const& graph) {
    return std::span<StageLayout const>(&graph == &graphs.evaluation ? graphs.stages.evaluate
                                                                     : graphs.stages.train);
  };
  return verify_places(actions, SequenceOrder(actions), graphs.stages.memory, stages_of);
}

/// Of several stages, on one device and on two.
std::vector<TrainingGraphs> plans() {
  Bytes const enough = 1_MiB;
  auto const single = plan(1, enough).stages.memory.bytes;
  return {plan(1, single / 2), plan(2, single / 2)};
}

/// Of a stage for each layer, and with room for all boundaries on devices: checkpoints of stages
/// and of layers, and rounds that overlap.
std::vector<TrainingGraphs> resident_plans(std::size_t devices) {
  auto training = training_on(devices, 1_GiB);
  training.plan.rounds = 2;
  training.plan.resident_boundaries = true;
  training.plan.reaches_peers = devices > 1;
  training.plan.peer_boundaries = training.plan.reaches_peers;
  std::vector<TrainingGraphs> plans{plan(training, OneLayerStages{})};
  training.plan.checkpoints = Checkpoints::layers;
  plans.push_back(plan(training, OneLayerStages{}));
  training.plan.overlaps_rounds = true;
  plans.push_back(plan(training, OneLayerStages{}));
  return plans;
}

TEST_CASE("nothing that a plan's actions use shares bytes while it is live") {
  CHECK(violations_of(plan(1, 1_MiB)).empty());
  for (auto const& graphs : plans()) {
    REQUIRE(graphs.stages.train.size() > 2);
    CHECK(violations_of(graphs).empty());
  }
}

TEST_CASE("scratch or gradients within parameters are found, and what lies behind the arena") {
  for (auto const& graphs : plans()) {
    auto const stage = graphs.stages.partition.forward.size();  // the fused one
    auto const with = [&](auto const& change) {
      auto other = graphs;
      change(other.stages.train[stage], other.stages.memory);
      return violations_of(other);
    };
    auto const found = with([](StageLayout& s, DeviceMemoryPlan&) { s.region.scratch = 0; });
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().rule == Rule::buffer_reuse);
    CHECK(found.front().text.find("shares bytes with") != std::string::npos);
    CHECK_FALSE(with([](StageLayout& s, DeviceMemoryPlan&) {
                  s.region.gradients_bottom = s.region.scratch;
                }).empty());
    auto const behind =
        with([](StageLayout&, DeviceMemoryPlan& memory) { memory.bytes = memory.region_bytes; });
    REQUIRE_FALSE(behind.empty());
    CHECK(behind.front().text.find("behind the arena") != std::string::npos);
  }
}

TEST_CASE("contents of any age are found, where those in between leave their bytes alone") {
  auto graphs = plans().front();
  // All activations lie at the region's begin, where the parameters of even turns are.
  graphs.stages.memory.rings[static_cast<std::size_t>(BufferKind::activations_in)].offset = 0;
  CHECK_FALSE(violations_of(graphs).empty());
}

/// Actions on lanes of devices that each use a ring of one entry, without any stage.
class Uses {
 public:
  explicit Uses(std::size_t devices = 1) { graph_.devices = devices; }
  void add(LaneKind lane, BufferKind kind, bool writes, std::vector<ActionId> waits) {
    add({lane, DeviceId(0)}, {kind, DeviceId(0), 0}, writes, std::move(waits));
  }
  void add(Lane lane, Ring const& ring, bool writes, std::vector<ActionId> waits) {
    Buffer const buffer{ring, 0};
    auto& action = graph_.actions.emplace_back();
    action.lane = lane;
    action.stage = StageId(0);
    (writes ? action.writes : action.reads).push_back(buffer);
    action.waits = std::move(waits);
    auto& use = graph_.rings[buffer.ring];
    use.acquisitions = 1;
    use.users.resize(1);
    use.users[0].push_back(ActionId(graph_.actions.size() - 1));
  }
  /// Where outputs lie in the second half of inputs, and in the first saves and what stays.
  [[nodiscard]] std::size_t violations() const {
    DeviceMemoryPlan plan;
    plan.bytes = 512;
    plan.rings[static_cast<std::size_t>(BufferKind::activations_in)] = {0, 512, 1};
    plan.rings[static_cast<std::size_t>(BufferKind::activations_out)] = {256, 256, 1};
    plan.rings[static_cast<std::size_t>(BufferKind::saves)] = {0, 256, 1};
    plan.resident.checkpoints = plan.resident.gradients = {0, 256, 1};
    std::vector<StageLayout> const stages(1);
    auto const actions = GraphSequence(graph_.devices).add(graph_).unroll();
    return verify_places(actions,
                         SequenceOrder(actions),
                         plan,
                         [&](ActionGraph const&) { return std::span(stages); })
        .size();
  }

 private:
  ActionGraph graph_;
};

TEST_CASE("who has lost a part of its bytes must be over before another takes the rest") {
  for (bool const waits : {false, true}) {
    Uses uses;
    uses.add(LaneKind::activation_up, BufferKind::activations_in, true, {});
    uses.add(LaneKind::compute, BufferKind::activations_out, true, {ActionId(0)});
    uses.add(LaneKind::save_up,
             BufferKind::saves,
             true,
             waits ? std::vector{ActionId(0)} : std::vector<ActionId>());
    CHECK(uses.violations() == (waits ? 0 : 1));
  }
}

TEST_CASE("the last user on a lane counts, not the first") {
  for (std::size_t const waits_for : {0, 1}) {
    Uses uses;
    uses.add(LaneKind::activation_up, BufferKind::activations_in, true, {});
    uses.add(LaneKind::activation_up, BufferKind::activations_in, false, {});
    uses.add(LaneKind::compute, BufferKind::activations_out, true, {ActionId(waits_for)});
    CHECK(uses.violations() == 1 - waits_for);
  }
}

TEST_CASE("a boundary that is sent lies on the device that reads it, and is its sender's as well") {
  auto const lane = [](LaneKind kind, std::size_t device) { return Lane{kind, DeviceId(device)}; };
  auto const ring = [](BufferKind kind, std::size_t device) {
    return Ring{kind, DeviceId(device), 0};
  };
  for (std::size_t const device : {0, 1}) {  // who computes beside a copy from 0 to 1
    Uses uses(2);
    uses.add(lane(LaneKind::peer, 0), ring(BufferKind::checkpoint, 1), true, {});
    uses.add(lane(LaneKind::compute, device), ring(BufferKind::saves, device), true, {});
    CHECK(uses.violations() == device);
  }
  for (bool const waits : {false, true}) {  // two devices send to a third one
    Uses uses(3);
    uses.add(lane(LaneKind::peer, 0), ring(BufferKind::checkpoint, 2), true, {});
    uses.add(lane(LaneKind::peer, 1),
             ring(BufferKind::boundary_gradient, 2),
             true,
             waits ? std::vector{ActionId(0)} : std::vector<ActionId>());
    CHECK(uses.violations() == (waits ? 0 : 1));
  }
}

TEST_CASE("boundaries that stay, or come from peers, share no bytes with anything that is live") {
  for (std::size_t devices = 1; devices <= 3; ++devices) {
    for (auto const& graphs : resident_plans(devices)) {
      auto const& memory = graphs.stages.memory;
      auto const& [checkpoints, gradients] = memory.resident;
      REQUIRE(checkpoints.count > 1);
      REQUIRE(gradients.count > 1);
      CHECK(violations_of(graphs).empty());
      auto const found_with = [&](auto const& change) {
        auto other = graphs;
        change(other.stages.memory);
        return violations_of(other);
      };
      for (auto const kind : ResidentLayout::kinds) {
        for (auto const shared : {BufferKind::activations_in, BufferKind::activations_out}) {
          CHECK_FALSE(found_with([&](DeviceMemoryPlan& plan) {
                        plan.resident.of(kind).offset = plan.ring(shared).offset;
                      }).empty());
        }
        CHECK_FALSE(found_with([&](DeviceMemoryPlan& plan) {
                      plan.resident.of(kind).offset = 0;  // in the region of stages
                    }).empty());
      }
      CHECK_FALSE(found_with([](DeviceMemoryPlan& plan) {
                    plan.resident.gradients.offset = plan.resident.checkpoints.offset;
                  }).empty());
      // The last checkpoint lies where the first gradient does.
      CHECK_FALSE(found_with([](DeviceMemoryPlan& plan) {
                    plan.resident.checkpoints.offset += plan.resident.checkpoints.entry_bytes;
                  }).empty());
      auto const behind = found_with([](DeviceMemoryPlan& plan) { --plan.bytes; });
      REQUIRE_FALSE(behind.empty());
      CHECK(behind.front().text.find("behind the arena") != std::string::npos);
    }
  }
}

TEST_CASE("a region that is too small by one alignment is found") {
  for (auto graphs : plans()) {
    graphs.stages.memory.region_bytes -= tensor_alignment_bytes;
    CHECK_FALSE(violations_of(graphs).empty());
  }
}

}  // namespace place_check_test
