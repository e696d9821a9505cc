// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/forecast.hpp>

#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace forecast_test {

namespace {

using namespace roundpipe;
using test::graph_of;
using test::Made;

/// Ten layers in 13 stages: three layers in each forward stage, one in each backward stage. With 1
/// s forward and 2 s backward for each layer, all stages take 3 s.
class EqualStages {
 public:
  static constexpr std::size_t layers = 10;
  static constexpr double stage_s = 3;
  static constexpr std::size_t stages = 13;

  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    REQUIRE(problem.costs.size() == layers);
    Partition partition{{{0, 3}, {3, 3}, {6, 3}}, {}};
    for (auto layer = layers; layer > 0; --layer) {
      partition.backward.push_back({layer - 1, 1});
    }
    return partition;
  }
};

/// The forecast for a caller that waits for losses, with \p layers on links like \p link.
SimulationOptions options_of(std::vector<LayerCost> layers, LinkModel const& link = {}) {
  SimulationOptions options;
  options.compute.layers = std::move(layers);
  options.link = link;
  options.waits_for_losses = true;
  return options;
}

/// The seconds of a call of this model.
double call_seconds(ActionGraph const& call, LinkModel const& link = {}) {
  std::vector<LayerCost> const layers(EqualStages::layers, LayerCost{1, 2});
  return forecast_call_seconds(call, options_of(layers, link));
}

/// The seconds of a call of one layer with a forward of \p forward_s.
double one_layer_seconds(ActionGraph const& call, double forward_s, LinkModel const& link = {}) {
  return forecast_call_seconds(call, options_of({LayerCost{forward_s, 0}}, link));
}

ActionGraph call_of(std::size_t devices, std::size_t micro_batches) {
  test::Training training;
  training.model.dense = EqualStages::layers - 2;
  training.plan.devices = devices;
  training.plan.micro_batches_per_round = micro_batches;
  return test::plan_training(training,
                             RoundRobinSchedule{},
                             PriorityTransferEngine{},
                             LayerEventProtocol{},
                             EqualStages{})
      .call;
}

/// The bytes that a call moves over all links, and the number of copies.
std::pair<double, double> traffic_of(ActionGraph const& graph,
                                     std::initializer_list<LaneKind> lanes) {
  std::pair<double, double> traffic{0, 0};
  for (auto const& action : graph.actions) {
    if (std::ranges::find(lanes, action.lane.kind) != lanes.end()) {
      traffic.first += static_cast<double>(action.bytes);
      traffic.second += 1;
    }
  }
  return traffic;
}

Made copy_of(LaneKind lane, Bytes bytes) {
  Made made(lane == LaneKind::parameter_up    ? ActionKind::upload_parameters
            : lane == LaneKind::activation_up ? ActionKind::upload_activation
                                              : ActionKind::download_activation,
            lane,
            0);
  made.action.bytes = bytes;
  return made;
}

Made compute(std::size_t device = 0) {
  Made made(ActionKind::forward, LaneKind::compute, device);
  made.action.layer = LayerId(0);
  return made;
}

}  // namespace

TEST_CASE("one device takes the sum of its stages") {
  for (std::size_t micro_batches = 1; micro_batches <= 4; ++micro_batches) {
    auto const seconds = call_seconds(call_of(1, micro_batches));
    auto const sum = EqualStages::stage_s * EqualStages::stages;
    CHECK(seconds == doctest::Approx(static_cast<double>(micro_batches) * sum));
  }
}

TEST_CASE("N devices with equal stages, dealt round robin, take an N-th of the time") {
  std::pair<std::size_t, std::size_t> const cases[] = {{2, 2}, {3, 3}, {4, 4}, {2, 6}, {4, 12}};
  for (auto const& [devices, micro_batches] : cases) {
    auto const seconds = call_seconds(call_of(devices, micro_batches));
    auto const sum = EqualStages::stage_s * EqualStages::stages;
    CHECK(seconds ==
          doctest::Approx(static_cast<double>(micro_batches) * sum / static_cast<double>(devices)));
  }
}

TEST_CASE("fewer micro-batches than devices leave devices idle") {
  auto const sum = 2 * EqualStages::stage_s * EqualStages::stages;
  auto const seconds = call_seconds(call_of(4, 2));
  CHECK(seconds > 1.2 * sum / 4);
  CHECK(seconds < sum / 2 + 1e-9);
}

TEST_CASE("on a slow link a call takes the time of its uploads, both lanes together") {
  auto const graph = call_of(1, 4);
  auto const [bytes, copies] = traffic_of(graph, {LaneKind::parameter_up, LaneKind::activation_up});
  auto const compute_s = call_seconds(graph);
  for (double const share : {1e-2, 1e-3}) {  // compute's share of the time of the uploads
    LinkModel link;
    link.upload_bytes_per_second = share * bytes / compute_s;
    auto const seconds = call_seconds(graph, link);
    auto const uploads_s = bytes / link.upload_bytes_per_second;
    CHECK(seconds >= doctest::Approx(uploads_s));
    CHECK(seconds <= uploads_s + compute_s);
  }
  LinkModel link;
  link.latency_s = 1000;
  CHECK(call_seconds(graph, link) >= doctest::Approx(link.latency_s * copies));
}

TEST_CASE("a link that is fast enough is hidden") {
  auto const graph = call_of(2, 6);
  auto const compute_s = call_seconds(graph);
  auto const up = traffic_of(graph, {LaneKind::parameter_up, LaneKind::activation_up}).first;
  auto const down = traffic_of(graph, {LaneKind::gradient_down, LaneKind::activation_down}).first;
  LinkModel const link{1000 * up / compute_s, 1000 * down / compute_s};
  CHECK(call_seconds(graph, link) <= 1.01 * compute_s);
}

TEST_CASE("the lanes of one direction share a copy engine, the two directions do not") {
  LinkModel const link{10, 10};
  auto const up = graph_of({copy_of(LaneKind::parameter_up, 60),
                            copy_of(LaneKind::activation_up, 40),
                            compute().after({0, 1})});
  CHECK(one_layer_seconds(up, 1, link) == doctest::Approx(10));
  auto const both = graph_of({copy_of(LaneKind::parameter_up, 60),
                              copy_of(LaneKind::activation_down, 40),
                              compute().after({0, 1})});
  CHECK(one_layer_seconds(both, 1, link) == doctest::Approx(6));
}

TEST_CASE("a copy that is not ready does not hold up a copy that is") {
  LinkModel const link{10, 10};
  // The chunk waits for 8 s of compute. The activation is issued later, but goes up meanwhile.
  auto const graph = graph_of({compute(),
                               copy_of(LaneKind::parameter_up, 10).after({0}),
                               copy_of(LaneKind::activation_up, 40),
                               compute().after({1, 2})});
  CHECK(one_layer_seconds(graph, 8, link) == doctest::Approx(17));
}

TEST_CASE("devices rotate from call to call") {
  auto graph = graph_of({compute()});  // one slot, two devices
  graph.advance = 1;
  CHECK(one_layer_seconds(graph, 1) == doctest::Approx(0.5));
  graph.advance = 0;
  CHECK(one_layer_seconds(graph, 1) == doctest::Approx(1));
}

TEST_CASE("costs for fewer layers than the graph has are refused") {
  auto const graph = graph_of({compute()});
  CHECK(test::error_of([&] { (void)forecast_call_seconds(graph, options_of({})); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("plans are compared on links that are slower than measured, and slower yet together") {
  SimulationOptions machine;
  machine.link.upload_bytes_per_second = 100;
  machine.link.download_bytes_per_second = 200;
  machine.link.peer_bytes_per_second = 300;
  machine.link.root_upload_bytes_per_second = 110;
  machine.link.root_download_bytes_per_second = 120;
  machine.link.host_bytes_per_second = 400;
  machine.compute.host_bytes_per_second = 500;
  auto const slower = with_link_margin(machine, 1);
  CHECK(slower.link.upload_bytes_per_second == doctest::Approx(95));
  CHECK(slower.link.download_bytes_per_second == doctest::Approx(190));
  CHECK(slower.link.peer_bytes_per_second == 300);
  CHECK(slower.link.root_upload_bytes_per_second == doctest::Approx(99));
  CHECK(slower.link.root_download_bytes_per_second == doctest::Approx(108));
  CHECK(slower.link.host_bytes_per_second == doctest::Approx(380));
  CHECK(slower.compute.host_bytes_per_second == doctest::Approx(475));
  auto const slower_yet = with_link_margin(machine, 2);
  CHECK(slower_yet.link.upload_bytes_per_second == doctest::Approx(95));
  CHECK(slower_yet.link.root_upload_bytes_per_second == doctest::Approx(99));
  CHECK(slower_yet.link.host_bytes_per_second == doctest::Approx(340));
  CHECK(slower_yet.compute.host_bytes_per_second == doctest::Approx(425));

  // 190 bytes of chunks in each turn are the limit.
  auto const call =
      graph_of({copy_of(LaneKind::parameter_up, 190), compute().after({0})}, GraphRole::call, 1);
  auto const step = graph_of({}, GraphRole::step, 1);
  DeviceProperties device;
  device.upload_bytes_per_second = 100;
  CostModel const costs({LayerCost{1e-3, 0}});
  CHECK(forecast_training_seconds(call, step, costs, device) == doctest::Approx(2));
  CHECK(forecast_iteration_seconds(call, step, training_machine(costs, device)) ==
        doctest::Approx(1.9));

  // All devices together may reach less than the link of one.
  device.host_upload_bytes_per_second = 50;
  CHECK(forecast_training_seconds(call, step, costs, device) == doctest::Approx(190 / 45.));
  device.host_upload_bytes_per_second = 0;
  device.host_download_bytes_per_second = 50;
  CHECK(forecast_training_seconds(call, step, costs, device) == doctest::Approx(2));

  // Plans for several devices, which share the host's memory, count on less of it.
  device.host_bytes_per_second = 50;
  CHECK(forecast_training_seconds(call, step, costs, device) == doctest::Approx(190 / 47.5));
  auto const of_two =
      graph_of({copy_of(LaneKind::parameter_up, 190), compute().after({0})}, GraphRole::call, 2);
  auto const step_of_two = graph_of({}, GraphRole::step, 2);
  CHECK(forecast_training_seconds(of_two, step_of_two, costs, device) ==
        doctest::Approx(190 / 42.5));
}

}  // namespace forecast_test
