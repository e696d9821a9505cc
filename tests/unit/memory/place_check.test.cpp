// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/place_check.hpp>

#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace place_check_test {

using namespace roundpipe;
using namespace roundpipe::test;

TrainingGraphs plan(std::size_t devices, Bytes device_memory) {
  Training training;
  training.model.dense = 4;
  training.plan.devices = devices;
  training.plan.micro_batches_per_round = 3;
  training.plan.device_memory = device_memory;
  return plan_training(training,
                       RoundRobinSchedule{},
                       PriorityTransferEngine{},
                       LayerEventProtocol{},
                       Partitioner{});
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

TEST_CASE("a region that is too small by one alignment is found") {
  for (auto graphs : plans()) {
    graphs.stages.memory.region_bytes -= tensor_alignment_bytes;
    CHECK_FALSE(violations_of(graphs).empty());
  }
}

}  // namespace place_check_test
