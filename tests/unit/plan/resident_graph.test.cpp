// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/recompute_waits.hpp>
#include <roundpipe/partition/balanced_partition.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/schedule/dualpipe_schedule.hpp>
#include <roundpipe/schedule/gpipe_schedule.hpp>
#include <roundpipe/schedule/interleaved_schedule.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <roundpipe/schedule/naive_schedule.hpp>
#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/zb_h1_schedule.hpp>
#include <roundpipe/simulate/simulated_bubbles.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <roundpipe/simulate/stage_activity.hpp>
#include <support/error_of.hpp>
#include <support/simulated_schedules.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace resident_graph_test {

namespace {

using namespace roundpipe;

std::vector<LayerCost> random_costs(std::size_t layers, std::mt19937& random) {
  std::uniform_real_distribution<double> times(1, 5);
  std::vector<LayerCost> costs;
  for (std::size_t i = 0; i < layers; ++i) {
    costs.push_back({times(random), times(random), times(random)});
  }
  return costs;
}

Simulation run(ActionGraph const& graph,
               std::vector<LayerCost> const& costs,
               double hand_over_s = 0) {
  SimulationOptions options;
  options.compute.layers = costs;
  options.hand_over_s = hand_over_s;
  GraphSequence sequence(graph.devices);
  return simulate(sequence.add(graph), options);
}

/// Whether each layer runs each direction once for every micro-batch, in an order that follows all
/// waits.
void check_complete(ActionGraph const& graph, std::size_t layers, ScheduleShape const& shape) {
  using Work = std::tuple<std::size_t, std::size_t, std::size_t>;
  std::map<Work, std::map<ActionKind, int>> counts;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto const& action = graph.actions[i];
    for (auto const wait : action.waits) {
      CHECK(wait.index() < i);
    }
    if (action.lane.kind == LaneKind::compute) {
      ++counts[{action.layer.index(), action.round.index(), action.micro_batch.index()}]
              [action.kind];
    }
  }
  CHECK(counts.size() == layers * shape.rounds * shape.micro_batches_per_round);
  for (auto const& [work, kinds] : counts) {
    auto const count = [&](ActionKind kind) {
      auto const found = kinds.find(kind);
      return found == kinds.end() ? 0 : found->second;
    };
    CHECK(count(ActionKind::forward) <= 1);
    CHECK(count(ActionKind::recompute) == 1);
    CHECK(count(ActionKind::backward) + count(ActionKind::input_gradient) == 1);
    CHECK(count(ActionKind::input_gradient) == count(ActionKind::weight_gradient));
  }
}

/// Checks \p schedule with \p stages stages of random costs: the graph is complete, takes as long
/// as the task lists do by themselves, and has a cause for all idle time.
template <Schedule S>
void check_schedule(S const& schedule,
                    std::size_t stages,
                    std::size_t devices,
                    std::size_t micro_batches,
                    std::size_t layers) {
  std::mt19937 random(static_cast<unsigned>(stages * 100 + layers));
  auto const costs = random_costs(layers, random);
  auto const partition = balanced_partition({.costs = costs}, stages, fuses(schedule));
  auto const shape = test::shape_of(partition, devices, micro_batches);
  CAPTURE(stages);
  CAPTURE(devices);
  test::ScheduledModel const model(layers);
  auto const graph = model.bound(schedule, partition, shape);
  check_complete(graph, layers, shape);
  for (double const hand_over : {0.0, 0.75}) {
    auto const simulation = run(graph, costs, hand_over);
    auto const oracle =
        test::run_tasks(shape, schedule.tasks(shape), test::times_of(costs, partition), hand_over);
    auto const result = account_bubbles(simulation);
    CHECK(result.makespan_s == doctest::Approx(oracle.makespan));
    CHECK(result.ratio() == doctest::Approx(oracle.bubble()));
    auto const idle_s = result.makespan_s * static_cast<double>(devices) - result.busy_s;
    CHECK(result.bubbles.total() == doctest::Approx(idle_s));
    std::vector<int> in_flight;
    for (auto const count : peak_in_flight_forwards(simulation, partition)) {
      in_flight.push_back(static_cast<int>(count));
    }
    if (layers >= stages) {
      CHECK(in_flight == oracle.peak_in_flight);
    }
  }
}

}  // namespace

TEST_CASE(
    "graphs of schedules that bind stages take as long as their task lists, with all layers "
    "run and all idle time explained") {
  check_schedule(NaiveSchedule{}, 4, 4, 6, 9);
  check_schedule(GPipeSchedule{}, 4, 4, 6, 9);
  check_schedule(OneFOneBSchedule{}, 4, 4, 6, 9);
  check_schedule(OneFOneBSchedule{}, 8, 8, 16, 21);
  check_schedule(InterleavedSchedule{}, 8, 4, 8, 11);
  check_schedule(LoopedBfsSchedule{}, 7, 3, 6, 11);
  check_schedule(LoopedBfsSchedule{}, 12, 5, 10, 12);
  check_schedule(ZbH1Schedule{}, 4, 4, 8, 9);
  check_schedule(DualPipeSchedule{}, 4, 4, 12, 9);
  check_schedule(GPipeSchedule{}, 5, 5, 4, 3);  // two stages are empty
}

TEST_CASE(
    "round robin takes as long on devices that keep all weights as in the pipeline's graph, "
    "when copies take no time") {
  std::mt19937 random(7);
  for (std::size_t devices = 1; devices <= 5; ++devices) {
    auto const costs = random_costs(11, random);
    for (std::size_t rounds = 1; rounds <= 2; ++rounds) {
      auto const partition = Partitioner{}.partition(
          {.costs = costs, .devices = devices, .micro_batches_per_call = 6 * rounds});
      auto const shape = test::shape_of(partition, devices, 6, rounds);
      for (int const staleness : {0, 1}) {
        test::ScheduledModel const model(11, staleness);
        auto const step = model.step();
        SimulationOptions options;
        options.compute.layers = costs;
        options.hand_over_s = 0.1;
        std::vector<double> makespans_s;
        std::vector<std::size_t> hand_overs;
        for (auto const& graph : {model.bound(RoundRobinSchedule{}, partition, shape),
                                  model.streamed(RoundRobinSchedule{}, partition, shape)}) {
          check_complete(graph, 11, shape);
          GraphSequence sequence(devices);
          for (int i = 0; i < 4; ++i) {
            sequence.add(graph).add(step);
          }
          auto const simulation = simulate(sequence, options);
          makespans_s.push_back(account_bubbles(simulation).makespan_s);
          hand_overs.push_back(count_hand_overs(simulation));
        }
        CAPTURE(devices);
        CAPTURE(rounds);
        CAPTURE(staleness);
        CHECK(makespans_s[0] == doctest::Approx(makespans_s[1]));
        CHECK(hand_overs[0] <= hand_overs[1]);  // devices keep the weights that they received
        CHECK((devices > 1 && partition.size() > 1) == (hand_overs[1] > 0));
      }
    }
  }
}

TEST_CASE("recomputation that waits for the gradient lengthens a call, in either graph alike") {
  std::vector<LayerCost> const costs(8, LayerCost{1, 2});
  Partition const partition{{{0, 3}, {3, 3}}, {{6, 2}, {4, 2}, {2, 2}, {0, 2}}};
  auto const shape = test::shape_of(partition, 4, 4);
  test::ScheduledModel const model(8);
  auto const seconds = [&](ActionGraph const& graph) {
    return account_bubbles(run(graph, costs, 0.5)).makespan_s;
  };
  RoundRobinSchedule const schedule;
  auto streamed = model.streamed(schedule, partition, shape);
  auto const early_s = seconds(streamed);
  wait_for_gradients(streamed);
  CHECK(early_s == seconds(model.bound(schedule, partition, shape)));
  CHECK(seconds(streamed) > early_s);
  CHECK(seconds(streamed) == seconds(model.bound(schedule, partition, shape, true)));
}

TEST_CASE("iterations wait for the steps that write their weights") {
  std::vector<LayerCost> const costs(4, LayerCost{1, 2});
  Partition const partition{{{0, 2}}, {{2, 2}, {0, 2}}};
  auto const shape = test::shape_of(partition, 2, 4);
  auto const seconds = [&](int staleness, double step_s) {
    test::ScheduledModel const model(4, staleness);
    auto const graph = model.bound(RoundRobinSchedule{}, partition, shape);
    auto const step = model.step();
    GraphSequence sequence(2);
    for (int i = 0; i < 8; ++i) {
      sequence.add(graph).add(step);
    }
    SimulationOptions options;
    options.compute.layers = costs;
    options.compute.step_s.assign(4, step_s);
    return account_bubbles(simulate(sequence, options)).iteration_s;
  };
  auto const synchronous_s = seconds(0, 0);
  CHECK(seconds(0, 1) >= synchronous_s + 1);
  CHECK(seconds(1, 0) < synchronous_s);
  CHECK(seconds(1, 1) == doctest::Approx(seconds(1, 0)));          // the step runs during the call
  CHECK(seconds(1, 20) == doctest::Approx(4 * 20).epsilon(0.02));  // the optimizer is the limit
}

TEST_CASE("arguments that do not match are refused") {
  std::vector<LayerCost> const costs(4, LayerCost{1, 2});
  auto const partition = balanced_partition({.costs = costs}, 2, true);
  auto const shape = test::shape_of(partition, 2, 4);
  test::ScheduledModel const model(4);
  auto const code = [&](ScheduleShape const& s, DeviceTasks const& tasks) {
    std::vector<Bytes> const boundaries(4, 2);
    return test::error_of([&] {
             (void)build_resident_graph(
                 {model.blocks(), partition, boundaries, s, tasks, 0, false, [](BlockEvent) {
                    return std::vector<BlockEvent>{};
                  }});
           })
        .code();
  };
  auto tasks = OneFOneBSchedule{}.tasks(shape);
  auto other = shape;
  ++other.forward_stages;
  CHECK(code(other, tasks) == Errc::invalid_argument);
  tasks[0].erase(tasks[0].begin());  // the second device waits for this task
  CHECK(code(shape, tasks) == Errc::invalid_argument);
  tasks.pop_back();
  CHECK(code(shape, tasks) == Errc::invalid_argument);
}

}  // namespace resident_graph_test
