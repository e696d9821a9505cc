// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/replan.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace replan_test {

namespace {

using namespace roundpipe;
using test::error_of;

PartitionProblem problem_of(std::vector<LayerCost> costs) {
  return {std::move(costs), 4, 16};
}

std::vector<LayerCost> noisy(std::vector<LayerCost> costs, double share, std::mt19937_64& random) {
  std::uniform_real_distribution<double> factor(1 - share, 1 + share);
  for (auto& cost : costs) {
    cost.forward_s *= factor(random);
    cost.backward_s *= factor(random);
  }
  return costs;
}

}  // namespace

TEST_CASE("a partition that is the best one stays") {
  auto const problem = problem_of(std::vector<LayerCost>(12, {1, 2}));
  for (auto const by : {PartitionBy::bound, PartitionBy::simulation}) {
    auto const now = ChosenPartitioner(by).partition(problem);
    CHECK_FALSE(replan(problem, now, {.by = by, .threshold = 0}).has_value());
  }
}

TEST_CASE("noise below the threshold changes no plan, and without a threshold it would") {
  std::mt19937_64 random(1);
  auto const costs = noisy(std::vector<LayerCost>(40, {1, 2}), 0.8, random);  // no two alike
  for (auto const by : {PartitionBy::bound, PartitionBy::simulation}) {
    auto const now = ChosenPartitioner(by).partition(problem_of(costs));
    int changes = 0;
    for (int i = 0; i < 10; ++i) {
      auto const problem = problem_of(noisy(costs, 0.02, random));
      CHECK_FALSE(replan(problem, now, {.by = by}).has_value());
      changes += replan(problem, now, {.by = by, .threshold = 0}).has_value() ? 1 : 0;
    }
    CHECK(changes > 0);
  }
}

TEST_CASE(
    "costs that are quite different give another partition, which is better by the threshold") {
  std::vector<LayerCost> costs(12, {1, 2});
  auto const now = Partitioner{}.partition(problem_of(costs));
  costs[2] = {5, 10};
  auto const problem = problem_of(costs);
  auto const found = replan(problem, now);
  REQUIRE(found.has_value());
  CHECK(objective(problem, found->partition) < 0.97 * objective(problem, now));
  // Once it is exchanged, it stays.
  CHECK_FALSE(replan(problem, found->partition).has_value());

  ReplanOptions const simulated{.by = PartitionBy::simulation};
  auto const faster = replan(problem, now, simulated);
  REQUIRE(faster.has_value());
  SlotSimulation simulation(problem.costs, 4, 16);
  CHECK(faster->call.seconds < 0.97 * simulation.simulate(now, 16).seconds);
  CHECK_FALSE(replan(problem, faster->partition, simulated).has_value());
}

TEST_CASE("a partition that does not fit any more is exchanged, for a worse one too") {
  auto problem = problem_of(std::vector<LayerCost>(12, {1, 2}));
  auto const now = Partitioner{}.partition(problem);
  problem.fits = [](StageDirection, LayerRange range) { return range.count == 1; };
  REQUIRE_FALSE(fits(problem, now));
  auto const found = replan(problem, now);
  REQUIRE(found.has_value());
  CHECK(fits(problem, found->partition));
  CHECK(objective(problem, found->partition) > objective(problem, now));
}

TEST_CASE("what makes no sense is refused") {
  auto const problem = problem_of(std::vector<LayerCost>(3, {1, 2}));
  CHECK(error_of([&] { (void)replan(problem, {{}, {{0, 4}}}); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { (void)replan(problem, {{}, {{0, 3}}}, {.threshold = -0.1}); }).code() ==
        Errc::invalid_argument);
}

}  // namespace replan_test
