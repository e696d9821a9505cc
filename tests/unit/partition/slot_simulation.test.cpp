// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/slot_simulation.hpp>

#include <roundpipe/partition/stage_moves.hpp>
#include <support/bubble_study.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace slot_simulation_test {

using namespace roundpipe;
using test::error_of;

constexpr SlotSimulationOptions one_call{.asynchronous = false};
constexpr SlotSimulationOptions eager{.posts_after_losses = false};

/// \p stages equal stages of one second for each micro-batch: as many forward stages as backward
/// ones, or one less. The last layer is the fused stage.
struct EqualStages {
  std::vector<LayerCost> costs;
  Partition partition;

  explicit EqualStages(std::size_t stages) : costs(stages / 2 + 1, {1, 0, 1}) {
    auto const layers = costs.size();
    for (std::size_t i = 0; i + 1 < layers; ++i) {
      partition.forward.push_back({i, 1});
    }
    for (auto i = layers; i-- > 0;) {
      partition.backward.push_back({i, 1});
    }
  }
};

TEST_CASE("the makespans and bubbles of the published study are reproduced") {
  auto const json = test::read_test_data("bubbles.json");
  for (auto const& [name, result] : json.at("models").items()) {
    CAPTURE(name);
    auto const model = test::studied_model(name);
    auto const layers = model.costs.size();
    auto const partition =
        detail::StageSizes{result.at("forward_stages").get<std::vector<std::size_t>>(),
                           result.at("backward_stages").get<std::vector<std::size_t>>()}
            .partition(layers);
    auto options = one_call;
    options.communication_s = model.communication;  // in milliseconds, like all costs here
    SlotSimulation simulation(model.costs,
                              json.at("devices").get<std::size_t>(),
                              json.at("micro_batches").get<std::size_t>(),
                              options);
    auto const call =
        simulation.simulate(partition, json.at("micro_batches_per_round").get<std::size_t>());
    CHECK(call.seconds ==
          doctest::Approx(result.at("roundpipe_makespan_ms").get<double>()).epsilon(0.4e-7));
    auto const percent = result.at("bubble_percent").at("RoundPipe, synchronous").get<double>();
    CHECK(100 * call.bubble > percent - 0.01);
    CHECK(100 * call.bubble < percent + 0.01);
  }
}

TEST_CASE("a call of equal stages takes the time of the rounds' formula") {
  for (std::size_t devices = 1; devices <= 5; ++devices) {
    for (std::size_t pairs = devices; pairs <= 7; ++pairs) {
      EqualStages const model(2 * pairs);
      auto const stages = model.partition.size();
      REQUIRE(stages >= devices);
      for (std::size_t round = devices; round <= 6; ++round) {
        for (std::size_t rounds = 1; rounds <= 3; ++rounds) {
          SlotSimulation simulation(model.costs, devices, round * rounds, one_call);
          auto const last = stages * rounds - 1;  // k: the last slot of the call
          auto const expected = last / devices * round + last % devices + round;
          CHECK(simulation.simulate(model.partition, round).seconds ==
                doctest::Approx(static_cast<double>(expected)));
        }
      }
    }
  }
}

TEST_CASE(
    "one device never idles: a call takes the sum of its stages, and hand-overs cost nothing") {
  std::vector<LayerCost> const costs(4, {1, 2, 1.5});
  Partition const partition{{{0, 2}}, {{2, 2}, {0, 2}}};
  for (auto options : {SlotSimulationOptions{}, one_call, eager}) {
    options.communication_s = 10;
    auto const call = SlotSimulation(costs, 1, 3, options).simulate(partition, 3);
    CHECK(call.seconds == doctest::Approx(3 * (2 + 6 + 7)));
    CHECK(call.bubble == doctest::Approx(0));
  }
}

TEST_CASE("equal stages keep all devices busy in the steady state, unequal stages do not") {
  std::vector<LayerCost> const costs(4, {1, 2});
  SlotSimulation simulation(costs, 2, 8);
  // A forward stage of 3 layers and backward stages of 1: all stages take 3.
  Partition const even{{{0, 3}}, {{3, 1}, {2, 1}, {1, 1}, {0, 1}}};
  CHECK(simulation.simulate(even, 8).seconds == doctest::Approx(8 * 15.0 / 2));
  CHECK(simulation.simulate(even, 8).bubble == doctest::Approx(0));
  Partition const uneven{{{0, 1}, {1, 2}}, {{3, 1}, {0, 3}}};
  CHECK(simulation.simulate(uneven, 8).seconds > 8 * 15.0 / 2 * 1.2);
  CHECK(simulation.simulate(uneven, 8).bubble > 0.1);
}

TEST_CASE("by hand: hand-over, and recomputation before or after the gradient") {
  // Two layers, two devices, one micro-batch. Forward of layer 0: 1. Fused layer 1: 2 + 3. Then
  // layer 0 on device 0: 4 to recompute, 5 backward.
  std::vector<LayerCost> const costs{{1, 5, 4}, {2, 3}};
  Partition const partition{{{0, 1}}, {{1, 1}, {0, 1}}};
  auto options = one_call;
  options.communication_s = 0.5;
  // Device 1: 1.5 to 6.5. The gradient arrives at 7; recomputation from 1 to 5, or from 7 to 11.
  CHECK(SlotSimulation(costs, 2, 1, options).simulate(partition, 1).seconds == doctest::Approx(12));
  options.recompute_waits_for_gradient = true;
  CHECK(SlotSimulation(costs, 2, 1, options).simulate(partition, 1).seconds == doctest::Approx(16));
  auto const bubble = SlotSimulation(costs, 2, 1, options).simulate(partition, 1).bubble;
  CHECK(bubble == doctest::Approx(1 - 15.0 / 32));
  options.recompute_waits_for_gradient = false;
  // Of one layer nothing waits. Halves of layer 0: one is recomputed before the gradient, the other
  // from 9.5, behind the backward of the first.
  options.recomputes_one_by_one = true;
  CHECK(SlotSimulation(costs, 2, 1, options).simulate(partition, 1).seconds == doctest::Approx(12));
  std::vector<LayerCost> const halves{{0.5, 2.5, 2}, {0.5, 2.5, 2}, {2, 3}};
  Partition const of_halves{{{0, 2}}, {{2, 1}, {0, 2}}};
  CHECK(SlotSimulation(halves, 2, 1, options).simulate(of_halves, 1).seconds ==
        doctest::Approx(14));
}

TEST_CASE("an iteration waits for the gradients of the iteration before the last, and no more") {
  // One stage on four devices: without this wait four calls would run at once, with it two.
  std::vector<LayerCost> const costs{{1, 2}};
  Partition const partition{{}, {{0, 1}}};
  auto const call = SlotSimulation(costs, 4, 5, eager).simulate(partition, 5);
  CHECK(call.seconds == doctest::Approx(15.0 / 2));
  CHECK(call.bubble == doctest::Approx(0.5));
  // Calls posted after the losses of the previous call run one by one.
  CHECK(SlotSimulation(costs, 4, 5).simulate(partition, 5).seconds == doctest::Approx(15));
}

TEST_CASE("invalid simulations are refused") {
  std::vector<LayerCost> const costs{{1, 2}};
  Partition const partition{{}, {{0, 1}}};
  CHECK(error_of([&] { SlotSimulation(costs, 0, 1); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { SlotSimulation(costs, 1, 0); }).code() == Errc::invalid_argument);
  SlotSimulation simulation(costs, 2, 6);
  for (std::size_t const round : {0, 4, 12}) {
    CHECK(error_of([&] { (void)simulation.simulate(partition, round); }).code() ==
          Errc::invalid_argument);
  }
}

}  // namespace slot_simulation_test
