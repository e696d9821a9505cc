// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/core/random.hpp>
#include <roundpipe/plan/partition_objective.hpp>
#include <roundpipe/plan/simulated_partitioner.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

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

/// Whether the stages cover every layer as \ref Partition says.
bool covers(Partition const& partition, std::size_t layers) {
  std::size_t next = 0;
  for (auto const& range : partition.forward) {
    if (range.first != next || range.count == 0) {
      return false;
    }
    next = range.end();
  }
  if (partition.backward.front().first != next || partition.backward.front().end() != layers) {
    return false;
  }
  auto end = layers;
  for (auto const& range : partition.backward) {
    if (range.end() != end || range.count == 0) {
      return false;
    }
    end = range.first;
  }
  return end == 0;
}

}  // namespace

TEST_CASE("one device does not idle: a simulated call takes the sum of its stages") {
  std::vector<LayerCost> const costs(4, {1, 2});
  detail::SlotSimulation simulation(costs, 1, 3);
  Partition const partition{{{0, 2}}, {{2, 2}, {0, 2}}};
  CHECK(simulation.call_seconds(partition) == doctest::Approx(3 * (2 + 6 + 6)));
}

TEST_CASE("equal stages keep all devices busy, and unequal ones do not") {
  std::vector<LayerCost> const costs(4, {1, 2});
  detail::SlotSimulation simulation(costs, 2, 8);
  // 6 and 6 and 6 of a forward stage of 3 layers and backward stages of 1: all stages take 3.
  Partition const even{{{0, 3}}, {{3, 1}, {2, 1}, {1, 1}, {0, 1}}};
  CHECK(simulation.call_seconds(even) == doctest::Approx(8 * 15.0 / 2));
  Partition const uneven{{{0, 1}, {1, 2}}, {{3, 1}, {0, 3}}};
  CHECK(simulation.call_seconds(uneven) > 8 * 15.0 / 2 * 1.2);
}

TEST_CASE("what is simulated as fastest is at least as fast as what the bound says, and complete") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    auto const layers = std::size_t{3} + seed % 12;
    PartitionProblem problem{random_costs(layers, seed), 1 + seed % 5, 4 + seed % 9, {}};
    if (seed % 2 == 0) {
      problem.fits = [&](StageDirection direction, LayerRange range) {
        return range.count <= (direction == StageDirection::forward ? 5U : 3U);
      };
    }
    detail::SlotSimulation simulation(problem.costs, problem.devices, problem.micro_batches);
    auto const bound = Partitioner{}.partition(problem);
    auto const simulated = SimulatedPartitioner{}.partition(problem);
    CHECK(covers(simulated, layers));
    CHECK(simulation.call_seconds(simulated) <= simulation.call_seconds(bound) * 1.0011);
    if (problem.fits) {
      for (auto const& range : simulated.forward) {
        CHECK(problem.fits(StageDirection::forward, range));
      }
      for (auto const& range : simulated.backward) {
        CHECK(problem.fits(StageDirection::backward, range));
      }
    }
    CHECK(simulated == SimulatedPartitioner{}.partition(problem));
  }
}

TEST_CASE("one device takes the largest fused stage that fits: it saves a forward of each layer") {
  PartitionProblem problem{std::vector<LayerCost>(20, {1, 2}), 1, 8, {}};
  problem.fits = [](StageDirection direction, LayerRange range) {
    return direction == StageDirection::forward || range.count <= 6;
  };
  CHECK(SimulatedPartitioner{}.partition(problem).backward.front().count == 6);
}

TEST_CASE("problems that no partition solves are refused as the bound's partitioner does") {
  PartitionProblem problem{std::vector<LayerCost>(3, {1, 2}), 2, 2, {}};
  problem.fits = [](StageDirection, LayerRange) { return false; };
  CHECK(error_of([&] { (void)SimulatedPartitioner{}.partition(problem); }).code() ==
        Errc::over_budget);
  CHECK(error_of([] { (void)SimulatedPartitioner{}.partition({}); }).code() ==
        Errc::invalid_argument);
}
