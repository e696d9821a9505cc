// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/recompute_waits.hpp>

#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <support/simulated_schedules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace recompute_waits_test {

using namespace roundpipe;

constexpr std::size_t layers = 6;
constexpr std::size_t micro_batches = 3;
Partition const partition{{{0, 2}, {2, 2}}, {{4, 2}, {2, 2}, {0, 2}}};

ActionGraph example_graph(std::size_t devices, std::size_t rounds) {
  return test::ScheduledModel(layers).streamed(
      RoundRobinSchedule{}, partition, test::shape_of(partition, devices, micro_batches, rounds));
}

/// When each recomputation begins, and when the gradient of its stage and micro-batch arrives.
bool recomputes_early(ActionGraph const& graph) {
  SimulationOptions options;
  options.compute.layers.assign(layers, {1, 1});
  options.hand_over_s = 5;
  GraphSequence sequence(graph.devices);
  auto const timeline = simulate(sequence.add(graph), options).timeline;
  for (auto const& gradient : timeline) {
    for (auto const& entry : timeline) {
      if (gradient.kind == ActionKind::upload_gradient && entry.kind == ActionKind::recompute &&
          entry.slot == gradient.slot && entry.micro_batch == gradient.micro_batch &&
          entry.start_s < gradient.end_s) {
        return true;
      }
    }
  }
  return false;
}

TEST_CASE("recomputation begins before the gradient arrives, unless it must wait") {
  for (std::size_t const rounds : {1, 2}) {
    for (std::size_t const devices : {2, 3, 5}) {
      auto graph = example_graph(devices, rounds);
      CHECK(recomputes_early(graph));
      wait_for_gradients(graph);
      CHECK_FALSE(recomputes_early(graph));
    }
  }
}

TEST_CASE("each micro-batch of a backward stage gets one wait, at its first layer") {
  auto const before = example_graph(3, 2);
  auto after = before;
  wait_for_gradients(after);
  REQUIRE(after.actions.size() == before.actions.size());
  std::set<std::pair<SlotId, MicroBatchId>> changed;
  for (std::size_t i = 0; i < after.actions.size(); ++i) {
    auto const& action = after.actions[i];
    CHECK(std::ranges::is_sorted(action.waits));
    if (action.waits == before.actions[i].waits) {
      continue;
    }
    CHECK(action.kind == ActionKind::recompute);
    CHECK(action.waits.size() == before.actions[i].waits.size() + 1);
    CHECK((action.layer == LayerId(2) || action.layer == LayerId(0)));
    CHECK(changed.emplace(action.slot, action.micro_batch).second);
    for (auto const wait : action.waits) {
      CHECK(wait.index() < i);  // the same issue order stays possible
    }
  }
  CHECK(changed.size() == 2 * 2 * micro_batches);  // unfused stages, rounds
}

TEST_CASE("a graph of one fused stage gets no such waits") {
  Partition const single{{}, {{0, 2}}};
  auto graph = test::ScheduledModel(2).streamed(
      RoundRobinSchedule{}, single, test::shape_of(single, 1, micro_batches));
  auto const before = graph;
  wait_for_gradients(graph);
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    CHECK(graph.actions[i].waits == before.actions[i].waits);
  }
}

}  // namespace recompute_waits_test
