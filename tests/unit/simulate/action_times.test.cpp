// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/action_times.hpp>

#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace action_times_test {

namespace {

using namespace roundpipe;
using test::Made;

Made pass(ActionKind kind, std::size_t layer, std::size_t device = 0) {
  Made made(kind, LaneKind::compute, device);
  made.action.layer = LayerId(layer);
  return made;
}

ComputeCosts costs_of(std::vector<LayerCost> layers,
                      std::vector<double> speeds = {},
                      std::vector<double> step_s = {},
                      double host_bytes_per_second = 0) {
  return {std::move(layers), std::move(speeds), std::move(step_s), host_bytes_per_second};
}

/// The time of each action of \p graph.
std::vector<double> seconds_of(ActionGraph const& graph, ComputeCosts costs) {
  ActionTimes times(std::move(costs), graph.devices);
  std::vector<double> seconds;
  GraphSequence sequence(graph.devices);
  for (auto const& action : sequence.add(graph).unroll()) {
    seconds.push_back(times(action, 0));
  }
  return seconds;
}

}  // namespace

TEST_CASE("passes take the time of their layer, longer on slow devices") {
  auto const graph = test::graph_of({pass(ActionKind::forward, 0),
                                     pass(ActionKind::recompute, 0, 1),
                                     pass(ActionKind::backward, 1),
                                     pass(ActionKind::backward, 1, 1),
                                     pass(ActionKind::input_gradient, 1),
                                     pass(ActionKind::weight_gradient, 0, 1)});
  std::vector<LayerCost> const layers{{1, 2, 3.0}, {5, 8}};
  CHECK(seconds_of(graph, costs_of(layers)) == std::vector<double>{1, 3, 8, 8, 4, 1});
  CHECK(seconds_of(graph, costs_of(layers, {1, 0.5})) == std::vector<double>{1, 6, 8, 16, 4, 2});
}

TEST_CASE("the last backward of a round takes the time of clearing and rounding sums, too") {
  auto const last = [](ActionKind kind) {
    auto made = pass(kind, 0);
    made.action.last = true;
    return made;
  };
  LayerCost cost{1, 2};
  cost.round_s = 0.5;
  auto const graph = test::graph_of({pass(ActionKind::backward, 0),
                                     last(ActionKind::forward),
                                     last(ActionKind::backward),
                                     last(ActionKind::input_gradient),
                                     last(ActionKind::weight_gradient)});
  CHECK(seconds_of(graph, costs_of({cost})) == std::vector<double>{2, 1, 2.5, 1, 1.5});
}

TEST_CASE("recomputing takes the time of the forward when no other time is known") {
  auto const graph = test::graph_of({pass(ActionKind::forward, 0), pass(ActionKind::recompute, 0)});
  CHECK(seconds_of(graph, costs_of({{4, 2}})) == std::vector<double>{4, 4});
}

TEST_CASE("a layer whose first forward is in its backward stage takes a forward there") {
  auto const fused = test::graph_of({pass(ActionKind::recompute, 0)});
  CHECK(seconds_of(fused, costs_of({{4, 2, 3.0}})) == std::vector<double>{4});
  auto const again = test::graph_of({pass(ActionKind::forward, 0), pass(ActionKind::recompute, 0)});
  CHECK(seconds_of(again, costs_of({{4, 2, 3.0}})) == std::vector<double>{4, 3});
}

TEST_CASE("a recomputation whose output nobody reads takes what is left from its save level") {
  auto replay = pass(ActionKind::recompute, 0);
  replay.action.hands_on_output = false;
  auto partial = replay;
  partial.action.save_level = 1;
  auto saving = pass(ActionKind::recompute, 0);
  saving.action.save_level = 1;
  auto const graph = test::graph_of({pass(ActionKind::forward, 0), replay, partial, saving});
  LayerCost cost{4, 2, 3.0};
  CHECK(seconds_of(graph, costs_of({cost})) == std::vector<double>{4, 3, 3, 4});
  cost.replay_s = {2.5, 1};
  CHECK(seconds_of(graph, costs_of({cost})) == std::vector<double>{4, 2.5, 1, 4});
}

TEST_CASE("steps take the time of their block, other work of the host depends on its bytes") {
  Made step(ActionKind::optimizer_step, LaneKind::optimizer);
  step.action.bytes = 60;
  step.action.block = BlockId(0);
  Made copy(ActionKind::copy_parameters, LaneKind::optimizer);
  copy.action.bytes = 30;
  auto const graph = test::graph_of({step, copy}, GraphRole::step);
  CHECK(seconds_of(graph, {}) == std::vector<double>{0, 0});
  CHECK(seconds_of(graph, costs_of({}, {}, {}, 30)) == std::vector<double>{2, 1});
  CHECK(seconds_of(graph, costs_of({}, {}, {7}, 30)) == std::vector<double>{7, 1});
  auto second = step;
  second.action.block = BlockId(1);
  auto const two = test::graph_of({step, second}, GraphRole::step);
  CHECK(seconds_of(two, costs_of({}, {}, {7, 9}, 30)) == std::vector<double>{7, 9});
}

TEST_CASE("a reduction takes the network's time besides the host's, other work does not") {
  Made reduction(ActionKind::reduce_gradient, LaneKind::reduce);
  reduction.action.bytes = 60;
  reduction.action.received = 40;
  Made sum(ActionKind::accumulate_gradient, LaneKind::accumulate);
  sum.action.bytes = 60;
  auto const graph = test::graph_of({reduction, sum});
  auto costs = costs_of({}, {}, {}, 30);
  CHECK(seconds_of(graph, costs) == std::vector<double>{2, 2});
  costs.network_bytes_per_second = 10;
  costs.network_latency_s = 0.5;
  CHECK(seconds_of(graph, costs) == std::vector<double>{6.5, 2});
}

TEST_CASE("reductions and gathers share the network") {
  Made reduction(ActionKind::reduce_gradient, LaneKind::reduce);
  reduction.action.received = 40;
  Made gather(ActionKind::gather_weights, LaneKind::gather);
  gather.action.received = 20;
  auto costs = costs_of({});
  costs.network_bytes_per_second = 10;
  CHECK(seconds_of(test::graph_of({reduction, gather}), costs) == std::vector<double>{4, 6});
}

TEST_CASE("costs without a layer, a block or a device are refused") {
  auto const code = [](ActionGraph const& graph, ComputeCosts const& costs) {
    return test::error_of([&] { (void)seconds_of(graph, costs); }).code();
  };
  auto const graph = test::graph_of({pass(ActionKind::forward, 1)});
  CHECK(code(graph, costs_of({{1, 1}, {1, 1}})) != Errc::invalid_argument);
  CHECK(code(graph, costs_of({{1, 1}})) == Errc::invalid_argument);
  CHECK(code(graph, costs_of({{1, 1}, {1, 1}}, {1})) == Errc::invalid_argument);
  CHECK(code(graph, costs_of({{1, 1}, {1, 1}}, {1, 0})) == Errc::invalid_argument);
  CHECK(code(graph, costs_of({{1, 1}, {1, 1}}, {1, -1})) == Errc::invalid_argument);
  Made step(ActionKind::optimizer_step, LaneKind::optimizer);
  step.action.block = BlockId(1);
  auto const steps = test::graph_of({step}, GraphRole::step);
  CHECK(code(steps, costs_of({}, {}, {1})) == Errc::invalid_argument);
}

}  // namespace action_times_test
