// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/simulated_partitioner.hpp>

#include <roundpipe/core/random.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/stage_moves.hpp>
#include <support/bubble_study.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace simulated_partitioner_test {

namespace {

using namespace roundpipe;
using test::error_of;

std::vector<LayerCost> random_costs(std::size_t layers, std::uint32_t seed) {
  std::vector<LayerCost> costs;
  for (std::size_t i = 0; i < layers; ++i) {
    auto const forward_s = 1.0 + static_cast<double>(uniform(random_word({seed}, 2 * i)));
    auto const ratio = 1.5 + static_cast<double>(uniform(random_word({seed}, 2 * i + 1)));
    costs.push_back({forward_s, ratio * forward_s});
  }
  return costs;
}

}  // namespace

TEST_CASE("the fastest simulated partition is complete and at least as fast as the bound's") {
  for (std::uint32_t seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    auto const layers = std::size_t{3} + seed % 12;
    PartitionProblem problem{.costs = random_costs(layers, seed),
                             .devices = 1 + seed % 5,
                             .micro_batches_per_call = 4 + seed % 9};
    if (seed % 2 == 0) {
      problem.fits = [&](StageDirection direction, LayerRange range) {
        return range.count <= (direction == StageDirection::forward ? 5U : 3U);
      };
    }
    auto const bound = Partitioner{}.partition(problem);
    for (SlotSimulationOptions const& options :
         {SlotSimulationOptions{},
          SlotSimulationOptions{.posts_after_losses = false, .communication_s = 0.2},
          SlotSimulationOptions{.asynchronous = false, .communication_s = 0.1},
          SlotSimulationOptions{.asynchronous = false, .recompute_waits_for_gradient = true}}) {
      SlotSimulation simulation(
          problem.costs, problem.devices, problem.micro_batches_per_call, options);
      auto const found = SimulatedPartitioner(options).search(problem);
      CHECK(covers(found.partition, layers));
      CHECK(fits(problem, found.partition));
      CHECK(problem.micro_batches_per_call % found.micro_batches_per_round == 0);
      CHECK(found.call.seconds ==
            simulation.simulate(found.partition, found.micro_batches_per_round).seconds);
      for (auto const round : round_sizes(problem)) {
        CHECK(found.call.seconds <= simulation.simulate(bound, round).seconds * 1.0002);
      }
      CHECK(found.partition == SimulatedPartitioner(options).partition(problem));
    }
  }
}

TEST_CASE(
    "one device takes the largest fused stage that fits, which saves a forward of each layer") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(20, {1, 2}), .devices = 1, .micro_batches_per_call = 8};
  problem.fits = [](StageDirection direction, LayerRange range) {
    return direction == StageDirection::forward || range.count <= 6;
  };
  CHECK(SimulatedPartitioner{}.partition(problem).backward.front().count == 6);
}

TEST_CASE("problems without a solution are refused with the errors of the bound's partitioner") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(3, {1, 2}), .devices = 2, .micro_batches_per_call = 2};
  problem.fits = [](StageDirection, LayerRange) { return false; };
  CHECK(error_of([&] { (void)SimulatedPartitioner{}.partition(problem); }).code() ==
        Errc::over_budget);
  CHECK(error_of([] { (void)SimulatedPartitioner{}.partition({}); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("listed rounds are used") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(3, {1, 2}), .devices = 8, .micro_batches_per_call = 48};
  problem.micro_batches_per_round = {6};
  CHECK(SimulatedPartitioner{}.search(problem).micro_batches_per_round == 6);
  problem.micro_batches_per_round = {7};
  CHECK(error_of([&] { (void)SimulatedPartitioner{}.search(problem); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("with up to five layers, a single call is as short as with the best of all partitions") {
  int optimal = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    auto const layers = std::size_t{2} + seed % 4;
    PartitionProblem const problem{.costs = random_costs(layers, seed),
                                   .devices = 1 + seed % 4,
                                   .micro_batches_per_call = 2 + seed % 5};
    SlotSimulationOptions const options{.asynchronous = false, .communication_s = 0.1};
    SlotSimulation simulation(
        problem.costs, problem.devices, problem.micro_batches_per_call, options);
    auto least = std::numeric_limits<double>::infinity();
    for (std::uint32_t f = 0; f < 1U << (layers - 1); ++f) {  // bit i: a cut after layer i
      for (std::uint32_t b = 0; b < 1U << (layers - 1); ++b) {
        detail::StageSizes sizes{{}, {0}};
        for (auto layer = layers; layer-- > 0;) {
          ++sizes.backward.back();
          if (layer > 0 && (b >> (layer - 1) & 1U) != 0) {
            sizes.backward.push_back(0);
          }
        }
        for (std::size_t layer = 0; layer + sizes.backward[0] < layers; ++layer) {
          if (layer == 0 || (f >> (layer - 1) & 1U) != 0) {
            sizes.forward.push_back(0);
          }
          ++sizes.forward.back();
        }
        for (auto const round : round_sizes(problem)) {
          least = std::min(least, simulation.simulate(sizes.partition(layers), round).seconds);
        }
      }
    }
    auto const found = SimulatedPartitioner(options).search(problem).call.seconds;
    CHECK(found >= least * (1 - 1e-9));
    CHECK(found <= least * 1.03);
    optimal += found <= least * (1 + 1e-9) ? 1 : 0;
  }
  CHECK(optimal >= 34);
}

TEST_CASE(
    "the search beats the published study's partitions on its models, and the bound's on all "
    "five") {
  auto const study = test::read_test_data("bubbles.json");
  for (auto const* name :
       {"qwen3-1.7b", "llama3.1-8b", "qwen3-32b", "gpt-oss-20b", "qwen3-235b-a22b"}) {
    CAPTURE(name);
    auto const model = test::studied_model(name);
    PartitionProblem const problem{
        .costs = model.costs, .devices = 8, .micro_batches_per_call = 16};
    SlotSimulationOptions options{.asynchronous = false, .communication_s = model.communication};
    auto const found = SimulatedPartitioner(options).search(problem);
    CHECK(found.micro_batches_per_round >= 8);
    auto const bound = Partitioner{}.partition(problem);
    SlotSimulation simulation(problem.costs, 8, 16, options);
    for (auto const round : round_sizes(problem)) {
      CHECK(found.call.seconds < simulation.simulate(bound, round).seconds);
    }
    if (study.at("models").contains(name)) {
      CHECK(found.call.seconds <
            study.at("models").at(name).at("roundpipe_makespan_ms").get<double>());
    }
    // The steady state, posted as soon as devices are free or as the pipeline posts calls.
    options.asynchronous = true;
    CHECK(SimulatedPartitioner(options).search(problem).call.bubble < 0.015);
    options.posts_after_losses = false;
    CHECK(SimulatedPartitioner(options).search(problem).call.bubble < 0.015);
  }
}

TEST_CASE("one layer, and layers without cost, are cut too") {
  for (auto const asynchronous : {false, true}) {
    SlotSimulationOptions const options{.asynchronous = asynchronous};
    PartitionProblem const one{.costs = {{1, 2}}, .devices = 3, .micro_batches_per_call = 4};
    CHECK(SimulatedPartitioner(options).partition(one) == Partition{{}, {{0, 1}}});
    for (std::size_t layers = 2; layers < 30; layers += 9) {
      PartitionProblem const free{
          .costs = std::vector<LayerCost>(layers), .devices = 3, .micro_batches_per_call = 4};
      auto const found = SimulatedPartitioner(options).search(free);
      CHECK(covers(found.partition, layers));
      CHECK(found.call.seconds == 0);
    }
  }
}

}  // namespace simulated_partitioner_test
