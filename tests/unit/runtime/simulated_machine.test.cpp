// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/simulated_machine.hpp>

#include <roundpipe/bubble/cost_fit.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/memory/live_bytes.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

namespace simulated_machine_test {

using namespace roundpipe;

namespace {

DeviceProperties linked(double upload, double download) {
  DeviceProperties device;
  device.upload_bytes_per_second = upload;
  device.download_bytes_per_second = download;
  return device;
}

/// The facts of a plan of two layers with one block each.
PipelinePlan two_layers(std::size_t devices = 1) {
  ActionGraph graph;
  graph.devices = devices;
  ParameterBlocks blocks;
  blocks.blocks.resize(2);
  return {.model = {},
          .blocks = blocks,
          .costs = CostModel({{1e-3, 2e-3}, {3e-3, 4e-3}}),
          .stages = {},
          .host = {},
          .ledger = {},
          .graph = graph,
          .step = graph};
}

TimelineEntry took(ActionKind kind, std::size_t index, double seconds) {
  TimelineEntry entry;
  entry.kind = kind;
  if (kind == ActionKind::optimizer_step) {
    entry.lane = {LaneKind::optimizer, DeviceId::none()};
    entry.block = BlockId(index);
  } else {
    entry.lane = {LaneKind::compute, DeviceId(0)};
    entry.layer = LayerId(index);
  }
  entry.start_s = 1;
  entry.end_s = 1 + seconds;
  return entry;
}

}  // namespace

TEST_CASE("a plan's machine has the plan's costs and the device's links") {
  auto const machine = simulated_machine(two_layers(), linked(3e9, 2e9));
  CHECK(machine.link.upload_bytes_per_second == 3e9);
  CHECK(machine.link.download_bytes_per_second == 2e9);
  CHECK(machine.waits_for_losses);
  CHECK(machine.compute.device_memory_bytes_per_second ==
        DeviceProperties{}.memory_bytes_per_second);
  CHECK(machine.compute.step_s.empty());
  REQUIRE(machine.compute.layers.size() == 2);
  CHECK(machine.compute.layers[0].backward_s == 2e-3);
  CHECK(machine.compute.layers[1].forward_s == 3e-3);
}

TEST_CASE("measured times of a timeline replace costs") {
  Timeline timeline{1, {}};
  timeline.entries = {took(ActionKind::forward, 0, 0.5),
                      took(ActionKind::backward, 1, 0.25),
                      took(ActionKind::optimizer_step, 1, 0.125)};
  auto const machine = simulated_machine(two_layers(), linked(3e9, 2e9), timeline);
  CHECK(machine.compute.layers[0].forward_s == doctest::Approx(0.5));
  CHECK(machine.compute.layers[0].backward_s == 2e-3);
  CHECK(machine.compute.layers[1].backward_s == doctest::Approx(0.25));
  REQUIRE(machine.compute.step_s.size() == 2);
  CHECK(machine.compute.step_s[0] == 0);
  CHECK(machine.compute.step_s[1] == doctest::Approx(0.125));
  CHECK(machine.compute.device_memory_bytes_per_second == 0);
  CHECK(machine.link.upload_bytes_per_second == 3e9);
}

TEST_CASE("a device that was slow in a timeline is slow") {
  Timeline timeline{2, {}};
  timeline.entries = {took(ActionKind::forward, 0, 0.4), took(ActionKind::forward, 0, 0.8)};
  timeline.entries[1].lane.device = DeviceId(1);
  auto const machine = simulated_machine(two_layers(2), linked(3e9, 2e9), timeline);
  CHECK(machine.compute.layers[0].forward_s == doctest::Approx(0.6));
  REQUIRE(machine.compute.device_speeds.size() == 2);
  CHECK(machine.compute.device_speeds[0] == doctest::Approx(1.5));
  CHECK(machine.compute.device_speeds[1] == doctest::Approx(0.75));
}

TEST_CASE("links become as slow as they were in a timeline") {
  test::PlannedCall const planned;
  auto const& plan = planned.plan;
  GraphSequence sequence(2);
  sequence.add(plan.graph).add(plan.step);
  auto const timeline = simulate(sequence, simulated_machine(plan, linked(1e6, 1e6))).timeline;
  auto const machine = simulated_machine(plan, linked(4e6, 2e6), timeline);
  CHECK(machine.link.upload_bytes_per_second == doctest::Approx(1e6).epsilon(0.02));
  CHECK(machine.link.download_bytes_per_second == doctest::Approx(1e6).epsilon(0.02));
}

TEST_CASE("what is live on the fullest device is the most of any, and less than the arena") {
  test::PlannedCall const planned;
  auto const& plan = planned.plan;
  auto const machine = simulated_machine(plan, linked(1e6, 1e6));
  GraphSequence sequence(2);
  for (int iteration = 0; iteration < 3; ++iteration) {
    sequence.add(plan.graph).add(plan.step);
  }
  auto const devices = live_bytes(
      simulate(sequence, machine).timeline, plan.graph, plan.model, plan.blocks, plan.stages.train);
  REQUIRE(devices.size() == 2);
  auto const live = most_live_bytes(plan, machine);
  CHECK(live.total() == std::max(devices[0].total(), devices[1].total()));
  CHECK(live.total() > 0);
  CHECK(live.total() <= plan.stages.memory.bytes);
}

}  // namespace simulated_machine_test
