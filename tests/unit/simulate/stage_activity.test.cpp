// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/stage_activity.hpp>

#include <roundpipe/partition/balanced_partition.hpp>
#include <roundpipe/schedule/gpipe_schedule.hpp>
#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <support/simulated_schedules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stage_activity_test {

namespace {

using namespace roundpipe;
using Counts = std::vector<std::size_t>;

/// \p partition simulated with all passes at 1 s, and the counts of the simulation.
struct Activity {
  Counts in_flight;
  std::size_t hand_overs = 0;
};

Activity activity_of(ActionGraph const& graph, Partition const& partition, std::size_t layers) {
  SimulationOptions options;
  options.compute.layers.assign(layers, {1, 1});
  GraphSequence sequence(graph.devices);
  auto const simulation = simulate(sequence.add(graph).add(graph), options);
  CHECK(count_hand_overs(simulation, 1) == count_hand_overs(simulation));
  CHECK(count_hand_overs(simulation, 2) == 0);
  return {peak_in_flight_forwards(simulation, partition), count_hand_overs(simulation)};
}

/// For a schedule that binds \p layers layers to as many devices.
template <Schedule S>
Activity bound_activity(S const& schedule, std::size_t layers, std::size_t micro_batches) {
  std::vector<LayerCost> const costs(layers, {1, 1});
  auto const partition = balanced_partition({.costs = costs}, layers, fuses(schedule));
  auto const shape = test::shape_of(partition, layers, micro_batches);
  return activity_of(
      test::ScheduledModel(layers).bound(schedule, partition, shape), partition, layers);
}

}  // namespace

TEST_CASE("the stages that run forward are the forward stages and a fused stage") {
  Partition const fused{{{0, 3}, {3, 2}}, {{5, 1}, {2, 3}, {0, 2}}};
  CHECK(forward_ranges(fused) == std::vector<LayerRange>{{0, 3}, {3, 2}, {5, 1}});
  Partition const whole{{{0, 3}, {3, 3}}, {{3, 3}, {0, 3}}};
  CHECK(forward_ranges(whole) == whole.forward);
  Partition const single{{}, {{0, 4}}};
  CHECK(forward_ranges(single) == single.backward);
  Partition const empty{{{0, 2}, {2, 0}}, {{2, 0}, {0, 2}}};
  CHECK(forward_ranges(empty) == empty.forward);
}

TEST_CASE("GPipe holds all micro-batches at once, 1F1B as many as stages remain") {
  for (std::size_t const devices : {1, 2, 4}) {
    for (std::size_t const micro_batches : {1, 2, 4, 8}) {
      CAPTURE(devices);
      CAPTURE(micro_batches);
      CHECK(bound_activity(GPipeSchedule{}, devices, micro_batches).in_flight ==
            Counts(devices, micro_batches));
      Counts left;
      for (auto stages = devices; stages > 0; --stages) {
        left.push_back(std::min(stages, micro_batches));
      }
      CHECK(bound_activity(OneFOneBSchedule{}, devices, micro_batches).in_flight == left);
    }
  }
}

TEST_CASE("every boundary between two devices is handed over forward and backward") {
  for (std::size_t const devices : {1, 2, 4}) {
    for (std::size_t const micro_batches : {1, 3, 8}) {
      auto const wanted = 2 * (devices - 1) * micro_batches;
      CHECK(bound_activity(GPipeSchedule{}, devices, micro_batches).hand_overs == wanted);
      CHECK(bound_activity(OneFOneBSchedule{}, devices, micro_batches).hand_overs == wanted);
    }
  }
}

TEST_CASE("a device hands nothing over to itself, though boundaries go through the host") {
  std::size_t const layers = 5;
  Partition const partition{{{0, 2}, {2, 2}}, {{4, 1}, {2, 2}, {0, 2}}};
  auto const graph = test::ScheduledModel(layers).streamed(
      RoundRobinSchedule{}, partition, test::shape_of(partition, 1, 4));
  CHECK(activity_of(graph, partition, layers).hand_overs == 0);
}

TEST_CASE("stages without layers hold nothing") {
  Partition const partition{{{0, 2}, {2, 0}}, {{2, 0}, {0, 2}}};
  auto const graph =
      test::ScheduledModel(2).bound(GPipeSchedule{}, partition, {2, 2, 2, 3, 1, false});
  CHECK(activity_of(graph, partition, 2).in_flight == Counts{3, 0});
}

}  // namespace stage_activity_test
