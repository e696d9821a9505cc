// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/simulator.hpp>

#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace simulator_test {

using namespace roundpipe;
using test::graph_of;
using test::Made;

Made compute(std::size_t device = 0, std::size_t layer = 0) {
  Made made(ActionKind::forward, LaneKind::compute, device);
  made.action.layer = LayerId(layer);
  return made;
}
Made copy(ActionKind kind, LaneKind lane, Bytes bytes, std::size_t device = 0) {
  Made made(kind, lane, device);
  made.action.bytes = bytes;
  return made;
}
Made chunk_up(Bytes bytes, std::size_t device = 0) {
  return copy(ActionKind::upload_parameters, LaneKind::parameter_up, bytes, device);
}
Made boundary_up(Bytes bytes, std::size_t device = 0) {
  return copy(ActionKind::upload_activation, LaneKind::activation_up, bytes, device);
}
Made boundary_down(Bytes bytes, std::size_t device = 0) {
  return copy(ActionKind::download_activation, LaneKind::activation_down, bytes, device);
}

/// One layer of 1 s forward and 2 s backward, on links of 10 bytes a second.
SimulationOptions example_options() {
  SimulationOptions options;
  options.compute.layers = {{1, 2}};
  options.link.upload_bytes_per_second = 10;
  options.link.download_bytes_per_second = 10;
  return options;
}

using Times = std::vector<std::pair<double, double>>;

/// The start and end of each action of \p graph over \p turns turns.
Times times_of(ActionGraph const& graph, SimulationOptions const& options, std::size_t turns = 1) {
  GraphSequence sequence(graph.devices);
  for (std::size_t i = 0; i < turns; ++i) {
    sequence.add(graph);
  }
  Times times;
  for (auto const& entry : simulate(sequence, options).timeline) {
    times.emplace_back(entry.start_s, entry.end_s);
  }
  return times;
}

TEST_CASE("copies to other devices run beside those to and from the host, one after another") {
  auto options = example_options();
  options.link.peer_bytes_per_second = 5;
  options.link.upload_share_beside_work = options.link.download_share_beside_work = 0.5;
  auto const send = [](Bytes bytes, std::size_t device = 0) {
    return copy(ActionKind::send_boundary, LaneKind::peer, bytes, device);
  };
  auto const graph = graph_of(
      {boundary_up(20), boundary_down(30), send(10), send(5), send(20, 1), compute(1).after({3})},
      GraphRole::call,
      2);
  CHECK(times_of(graph, options) == Times{{0, 2}, {0, 3}, {0, 2}, {2, 3}, {0, 4}, {3, 4}});
}

TEST_CASE("the seconds of compute end where the timeline says") {
  auto graph = graph_of({chunk_up(20),
                         compute().after({0}),
                         boundary_down(15).after({1}),
                         boundary_up(25, 1).after({2}),
                         compute(1).after({3})},
                        GraphRole::call,
                        2);
  graph.advance = 1;
  GraphSequence sequence(2);
  sequence.add(graph).add(graph).add(graph).add(graph);
  auto const options = example_options();
  auto const simulation = simulate(sequence, options);
  auto const end_of = [&](std::size_t graphs) {
    double end_s = 0;
    for (auto const& entry : simulation.timeline) {
      auto const counts = entry.lane.kind == LaneKind::compute && entry.graph < graphs;
      end_s = counts ? std::max(end_s, entry.end_s) : end_s;
    }
    return end_s;
  };
  for (std::size_t first = 0; first < 4; ++first) {
    for (auto end = first; end <= 4; ++end) {
      CHECK(simulate_compute_seconds(sequence, first, end, options) == end_of(end) - end_of(first));
    }
  }
  CHECK(end_of(4) > end_of(3));
}

TEST_CASE("a lane runs its actions in order, each when all its waits are over") {
  auto const graph = graph_of({compute(),
                               boundary_down(5).after({0}),
                               boundary_up(20, 1).after({1}),
                               compute(),
                               compute(1).after({2})});
  CHECK(times_of(graph, example_options()) ==
        Times{{0, 1}, {1, 1.5}, {1.5, 3.5}, {1, 2}, {3.5, 4.5}});
}

TEST_CASE(
    "the two lanes of a direction share an engine, first come, first served; the directions "
    "do not") {
  auto const graph = graph_of({chunk_up(60), boundary_up(40), boundary_down(30)});
  CHECK(times_of(graph, example_options()) == Times{{0, 6}, {0, 10}, {0, 3}});
}

TEST_CASE("a waiting copy does not hold up the other lane") {
  auto const graph = graph_of({compute(), chunk_up(10).after({0}), boundary_up(40)});
  auto const times = times_of(graph, example_options());
  CHECK(times[2].second == doctest::Approx(4));
  CHECK(times[1].second == doctest::Approx(5));  // ready during the other copy
}

TEST_CASE("a lane with its next copy ready keeps the engine, where streams do") {
  // The boundary is ready while the first chunk is on its way.
  auto const graph =
      graph_of({compute(), chunk_up(20), chunk_up(20), chunk_up(20), boundary_up(10).after({0})});
  auto options = example_options();
  auto const fair = times_of(graph, options);
  CHECK(fair[4].second == doctest::Approx(3));
  CHECK(fair[2].second == doctest::Approx(5));
  options.link.streams_keep_engines = true;
  auto const kept = times_of(graph, options);
  CHECK(kept[2].second == doctest::Approx(4));
  CHECK(kept[3].second == doctest::Approx(6));
  CHECK(kept[4].second == doctest::Approx(7));
  // A lane that waits for something else lets the engine go.
  auto const yields =
      graph_of({compute(), chunk_up(20), boundary_up(10).after({0}), chunk_up(20).after({2})});
  CHECK(times_of(yields, options)[2].second == doctest::Approx(3));
  CHECK(times_of(yields, options)[3].second == doctest::Approx(5));
}

TEST_CASE("copies that share a link continue at the new rate when one ends") {
  auto options = example_options();
  options.link.groups = {{0, 1}};
  auto const graph = graph_of({chunk_up(20, 0), chunk_up(60, 1)});
  auto const times = times_of(graph, options);
  CHECK(times[0].second == doctest::Approx(4));  // 20 bytes at 5 a second
  CHECK(times[1].second == doctest::Approx(8));  // 20 until then, 40 at 10 a second
}

TEST_CASE("a latency keeps the engine busy, but not the link") {
  auto options = example_options();
  options.link.latency_s = 1;
  options.link.groups = {{0, 1}};
  auto const graph = graph_of({chunk_up(20, 0), chunk_up(0, 1), chunk_up(10, 1)});
  auto const times = times_of(graph, options);
  CHECK(times[1].second == doctest::Approx(1));
  // The second copy of device 1 moves from 2 s on; device 0 then has 10 bytes left.
  CHECK(times[0].second == doctest::Approx(4));
  CHECK(times[2].second == doctest::Approx(4));
}

TEST_CASE("a hand-over delays the receiving device, and keeps no lane busy") {
  SimulationOptions options;
  options.compute.layers = {{1, 2}};
  options.hand_over_s = 0.25;
  auto const graph = graph_of({compute(),
                               boundary_down(5).after({0}),
                               compute(),
                               boundary_down(5).after({2}),
                               boundary_up(5, 1).after({1}),
                               boundary_up(5, 1).after({3}),
                               boundary_up(5).after({3}),
                               compute(1).after({5}),
                               compute().after({6})});
  auto const times = times_of(graph, options);
  CHECK(times[4] == std::pair(1.0, 1.25));
  CHECK(times[5] == std::pair(2.0, 2.25));
  CHECK(times[6] == std::pair(2.0, 2.0));  // on its own device
  CHECK(times[7].first == 2.25);
  CHECK(times[8].first == 2);
}

TEST_CASE("on slower devices only compute takes longer") {
  auto options = example_options();
  options.compute.device_speeds = {1, 0.5};
  auto const graph = graph_of({compute(0), compute(1), chunk_up(10, 1)});
  CHECK(times_of(graph, options) == Times{{0, 1}, {0, 2}, {0, 1}});
}

TEST_CASE("each pass has its own time") {
  auto options = example_options();
  options.compute.layers = {{1, 4, 3.0}, {1, 4}, {1, 4, 3.0}};
  auto const pass = [](ActionKind kind, std::size_t layer) {
    Made made(kind, LaneKind::compute, 0);
    made.action.layer = LayerId(layer);
    return made;
  };
  auto const times = times_of(graph_of({pass(ActionKind::forward, 0),
                                        pass(ActionKind::forward, 1),
                                        pass(ActionKind::recompute, 2),
                                        pass(ActionKind::backward, 2),
                                        pass(ActionKind::recompute, 1),
                                        pass(ActionKind::recompute, 0),
                                        pass(ActionKind::input_gradient, 0),
                                        pass(ActionKind::weight_gradient, 0)}),
                              options);
  std::vector<double> seconds;
  for (auto const& [start_s, end_s] : times) {
    seconds.push_back(end_s - start_s);
  }
  // Layer 2 is in the fused stage: this is its first forward.
  CHECK(seconds == std::vector<double>{1, 1, 1, 4, 1, 3, 2, 2});
}

TEST_CASE("each issuer issues one action after another, each at a cost") {
  auto options = example_options();
  options.dispatch_s = 0.75;
  auto const graph = graph_of({chunk_up(0), compute(), compute(), compute(1)});
  CHECK(times_of(graph, options) == Times{{0.75, 0.75}, {0.75, 1.75}, {1.75, 2.75}, {0.75, 1.75}});
}

TEST_CASE("a caller that waits for losses issues the next graph when the losses arrive") {
  auto const loss = Buffer{{BufferKind::loss, DeviceId::none(), 0}, 0};
  auto const graph = graph_of({compute(), boundary_down(5).after({0}).writes(loss), compute(1)});
  auto options = example_options();
  CHECK(times_of(graph, options, 2) == Times{{0, 1}, {1, 1.5}, {0, 1}, {1, 2}, {2, 2.5}, {1, 2}});
  options.waits_for_losses = true;
  CHECK(times_of(graph, options, 2) ==
        Times{{0, 1}, {1, 1.5}, {0, 1}, {1.5, 2.5}, {2.5, 3}, {1.5, 2.5}});
}

TEST_CASE(
    "an optimizer step takes the time of its block, other work of the host depends on its bytes") {
  auto options = example_options();
  Made step(ActionKind::optimizer_step, LaneKind::optimizer);
  step.action.bytes = 80;
  auto const graph = graph_of({step}, GraphRole::step);
  CHECK(times_of(graph, options) == Times{{0, 0}});
  options.compute.host_bytes_per_second = 20;
  CHECK(times_of(graph, options) == Times{{0, 4}});
  options.compute.step_s = {7};
  CHECK(times_of(graph, options) == Times{{0, 7}});
}

TEST_CASE("copies are slower while the host works, each way as its share says") {
  auto options = example_options();
  options.compute.host_bytes_per_second = 20;
  Made sum(ActionKind::accumulate_gradient, LaneKind::accumulate);
  sum.action.bytes = 40;
  // The host works from 1 s to 3 s, and then again until 5 s.
  auto const graph =
      graph_of({compute(), sum.after({0}), chunk_up(60), boundary_down(60), Made(sum).after({1})});
  CHECK(times_of(graph, options)[2].second == doctest::Approx(6));
  options.link.upload_share_beside_work = 0.75;
  auto const times = times_of(graph, options);
  CHECK(times[4].second == doctest::Approx(5));
  CHECK(times[2].second == doctest::Approx(7));  // 10 bytes, 30 and 20
  CHECK(times[3].second == doctest::Approx(6));
  options.link.download_share_beside_work = 0.5;
  auto const slower = times_of(graph, options);
  CHECK(slower[2].second == doctest::Approx(7));
  CHECK(slower[3].second == doctest::Approx(8));  // 10 bytes, 20 and 30
}

TEST_CASE("copies of its device take memory from compute, for what they move meanwhile") {
  auto options = example_options();
  options.link.peer_bytes_per_second = 40;
  options.compute.device_memory_bytes_per_second = 100;
  auto const graph = graph_of({chunk_up(20),
                               boundary_down(5),
                               copy(ActionKind::send_boundary, LaneKind::peer, 10),
                               compute(),
                               compute(),
                               compute(1),
                               boundary_up(5, 1).after({5}),
                               compute(1)},
                              GraphRole::call,
                              2);
  auto const times = times_of(graph, options);
  // In its own second 10 + 5 + 10 bytes move; in that of the next pass the rest of the chunk.
  Times const expected{
      {0, 2}, {0, 0.5}, {0, 0.25}, {0, 1.25}, {1.25, 2.325}, {0, 1}, {1, 1.5}, {1, 2.05}};
  REQUIRE(times.size() == expected.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    CHECK(times[i].first == doctest::Approx(expected[i].first));
    CHECK(times[i].second == doctest::Approx(expected[i].second));
  }
}

TEST_CASE("invalid simulations are refused") {
  auto const code = [](ActionGraph const& graph, SimulationOptions const& options) {
    return test::error_of([&] { (void)times_of(graph, options); }).code();
  };
  auto options = example_options();
  CHECK(code(graph_of({compute(0, 1)}), options) == Errc::invalid_argument);
  CHECK(code(graph_of({compute().after({0})}), options) == Errc::invalid_argument);  // endless wait
  options.dispatch_s = -1;
  CHECK(code(graph_of({compute()}), options) == Errc::invalid_argument);
  options = example_options();
  options.compute.device_speeds = {1, 0};
  CHECK(code(graph_of({compute()}), options) == Errc::invalid_argument);
  options.compute.device_speeds = {1};
  CHECK(code(graph_of({compute()}), options) == Errc::invalid_argument);
  for (auto const share : {0.0, 1.5}) {
    options = example_options();
    options.link.upload_share_beside_work = share;
    CHECK(code(graph_of({compute()}), options) == Errc::invalid_argument);
    options = example_options();
    options.link.download_share_beside_work = share;
    CHECK(code(graph_of({compute()}), options) == Errc::invalid_argument);
  }
}

}  // namespace simulator_test
