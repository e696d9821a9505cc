// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/simulated_bubbles.hpp>

#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>

namespace simulated_bubbles_test {

using namespace roundpipe;
using test::graph_of;
using test::Made;

using Causes = std::map<BubbleCause, double>;

Made compute(std::size_t device = 0) {
  Made made(ActionKind::forward, LaneKind::compute, device);
  made.action.layer = LayerId(0);
  return made;
}
/// 10 bytes take a second.
Made copy_up(Bytes bytes, std::size_t device = 0) {
  Made made(ActionKind::upload_parameters, LaneKind::parameter_up, device);
  made.action.bytes = bytes;
  return made;
}
Made step() {
  return {ActionKind::optimizer_step, LaneKind::optimizer};
}

/// Compute takes a second, an optimizer step two.
SimulationOptions example_options() {
  SimulationOptions options;
  options.compute.layers = {{1, 2}};
  options.compute.step_s = {2};
  options.link.upload_bytes_per_second = 10;
  options.link.download_bytes_per_second = 10;
  return options;
}

SimulatedBubbles account(ActionGraph const& graph,
                         SimulationOptions const& options = example_options()) {
  GraphSequence sequence(graph.devices);
  return account_bubbles(simulate(sequence.add(graph), options));
}

/// The causes with a non-zero time.
Causes causes_of(SimulatedBubbles const& result) {
  Causes causes;
  for (std::size_t i = 0; i < bubble_cause_count; ++i) {
    auto const cause = static_cast<BubbleCause>(i);
    if (result.bubbles[cause] != 0) {
      causes[cause] = result.bubbles[cause];
    }
  }
  return causes;
}

ActionGraph with_devices(ActionGraph graph, std::size_t devices) {
  graph.devices = devices;
  return graph;
}

/// Iterations of 5 s. Device 0 and then device 1 compute for a second each; device 0 starts when
/// the previous step is over. A step takes 3 s.
class Turns {
 public:
  Turns() {
    call_.actions[0].block_waits = {{BlockId(0), BlockEventKind::parameter_copy, 0}};
    call_.block_events[{BlockId(0), BlockEventKind::gradient_write, 0}] = {ActionId(1)};
    step_.block_events[{BlockId(0), BlockEventKind::parameter_copy, 0}] = {ActionId(0)};
  }
  [[nodiscard]] SimulatedBubbles account(std::size_t iterations) const {
    auto options = example_options();
    options.compute.step_s = {3};
    GraphSequence sequence(2);
    for (std::size_t i = 0; i < iterations; ++i) {
      sequence.add(call_).add(step_);
    }
    return account_bubbles(simulate(sequence, options));
  }

 private:
  ActionGraph call_ = graph_of({compute(0), compute(1).after({0})});
  ActionGraph step_ = graph_of({step().after(BlockEventKind::gradient_write)}, GraphRole::step);
};

TEST_CASE("time before the first work of a device is fill, time after the last is drain") {
  auto const result = account(graph_of({compute(0), compute(1).after({0})}));
  CHECK(causes_of(result) == Causes{{BubbleCause::fill, 1}, {BubbleCause::drain, 1}});
  CHECK(result.busy_s == 2);
  CHECK(result.makespan_s == 2);
  CHECK(result.iterations == 1);
  CHECK(result.iteration_s == 2);
  CHECK(result.ratio() == 0.5);
}

TEST_CASE("a device that has begun and waits for another's compute has imbalance") {
  auto const graph = graph_of({compute(1), compute(0), compute(0), compute(1).after({2})});
  CHECK(causes_of(account(graph)) == Causes{{BubbleCause::imbalance, 1}, {BubbleCause::drain, 1}});
}

TEST_CASE("a copy in flight stalls its device") {
  auto const graph = with_devices(graph_of({compute(), copy_up(20), compute().after({1})}), 1);
  CHECK(causes_of(account(graph)) == Causes{{BubbleCause::transfer_stall, 1}});
}

TEST_CASE("a copy that waited for its place is a memory stall") {
  Ring const ring{BufferKind::parameters, DeviceId(0), 0};
  auto const graph_with = [&](std::size_t entries) {
    auto graph = with_devices(graph_of({compute().reads({ring, 0}),
                                        copy_up(20).after({0}).writes({ring, 1}),
                                        compute().after({1}).reads({ring, 1})}),
                              1);
    test::add_ring(graph, ring, entries, {{ActionId(0)}, {ActionId(1), ActionId(2)}});
    return graph;
  };
  CHECK(causes_of(account(graph_with(1))) == Causes{{BubbleCause::memory_stall, 2}});
  // With its own place, the copy waited for something else.
  CHECK(causes_of(account(graph_with(2))) == Causes{{BubbleCause::transfer_stall, 2}});
}

TEST_CASE("work of the host is an optimizer stall") {
  auto const graph =
      with_devices(graph_of({compute(), step().after({0}), compute().after({1})}), 1);
  CHECK(causes_of(account(graph)) == Causes{{BubbleCause::optimizer_stall, 2}});
}

TEST_CASE("late issue is dispatch") {
  auto options = example_options();
  options.dispatch_s = 1.5;
  auto const result = account(with_devices(graph_of({compute(), compute()}), 1), options);
  CHECK(causes_of(result) == Causes{{BubbleCause::dispatch, 2}});  // 1.5 s and 0.5 s
  CHECK(result.ratio() == 0.5);
}

TEST_CASE("idle time is traced back through the whole chain of waits") {
  // Device 1 computes, its result is uploaded to device 0, and device 0 begins.
  auto const graph = graph_of({compute(1), copy_up(20, 0).after({0}), compute(0).after({1})});
  CHECK(causes_of(account(graph)) ==
        Causes{{BubbleCause::fill, 1}, {BubbleCause::transfer_stall, 2}, {BubbleCause::drain, 3}});
}

TEST_CASE("a device without work drains") {
  CHECK(causes_of(account(graph_of({compute(0)}))) == Causes{{BubbleCause::drain, 1}});
}

TEST_CASE("no work has no bubble") {
  auto const result = account(graph_of({step()}));
  CHECK(causes_of(result).empty());
  CHECK(result.ratio() == 0);
  CHECK(result.makespan_s == 0);
}

TEST_CASE("up to two iterations are counted as a whole") {
  for (std::size_t const iterations : {1, 2}) {
    auto const result = Turns().account(iterations);
    auto const n = static_cast<double>(iterations);
    CHECK(result.iterations == iterations);
    CHECK(result.makespan_s == 5 * n - 3);
    CHECK(result.iteration_s == doctest::Approx((5 * n - 3) / n));
    CHECK(result.busy_s == 2 * n);
    CHECK(result.bubbles.total() == 2 * (5 * n - 3) - 2 * n);
  }
}

TEST_CASE(
    "with more iterations the steady state counts, from each device's finish of the second one") {
  for (std::size_t const iterations : {3, 4, 12}) {
    CAPTURE(iterations);
    auto const result = Turns().account(iterations);
    auto const n = static_cast<double>(iterations - 2);
    CHECK(result.iterations == iterations);
    CHECK(result.makespan_s == 5 * (n + 2) - 3);
    CHECK(result.iteration_s == doctest::Approx(5));
    CHECK(result.busy_s == doctest::Approx(2 * n));
    CHECK(result.ratio() == doctest::Approx(0.8));
    auto const& bubbles = result.bubbles;
    CHECK(bubbles.total() == doctest::Approx(8 * n));
    CHECK(bubbles[BubbleCause::optimizer_stall] == doctest::Approx(6 * n));  // both wait
    CHECK(bubbles[BubbleCause::drain] == doctest::Approx(n));                // device 0, old call
    CHECK(bubbles[BubbleCause::fill] == doctest::Approx(n));  // device 1, at the start of its call
  }
}

TEST_CASE("devices that never wait have no bubble in the steady state, at any load") {
  auto options = example_options();
  options.compute.device_speeds = {1, 0.5};
  auto const call = graph_of({compute(0), compute(1).after({0})});
  auto const last = graph_of({step()}, GraphRole::step);
  GraphSequence sequence(2);
  for (int i = 0; i < 5; ++i) {
    sequence.add(call).add(last);
  }
  auto const result = account_bubbles(simulate(sequence, options));
  CHECK(result.makespan_s == 11);
  CHECK(result.busy_s == 3 + 6);
  CHECK(result.ratio() == 0);
  CHECK(result.iteration_s == doctest::Approx(2));
}

}  // namespace simulated_bubbles_test
