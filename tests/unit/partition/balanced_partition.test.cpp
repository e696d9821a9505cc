// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/partition/balanced_partition.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace balanced_partition_test {

namespace {

using namespace roundpipe;
using test::error_of;

constexpr double infinite = std::numeric_limits<double>::infinity();
using Random = std::mt19937_64;

std::size_t draw(Random& random, std::size_t low, std::size_t high) {
  return std::uniform_int_distribution<std::size_t>(low, high)(random);
}

double draw_seconds(Random& random) {
  return static_cast<double>(draw(random, 0, 24)) / 8;
}

/// The time of a stage; infinity when it does not fit.
double seconds_of(PartitionProblem const& problem, LayerRange range, bool fused) {
  auto const fits = [&](StageDirection direction) {
    return !problem.fits || problem.fits(direction, range);
  };
  if (range.count > 0 &&
      (!fits(StageDirection::backward) || (!fused && !fits(StageDirection::forward)))) {
    return infinite;
  }
  double sum = 0;
  for (auto layer = range.first; layer < range.end(); ++layer) {
    auto const& cost = problem.costs[layer];
    sum +=
        cost.forward_s + cost.backward_s + (fused ? 0 : cost.recompute_s.value_or(cost.forward_s));
  }
  return sum;
}

/// The smallest time of the slowest of \p stages stages from layer \p first on, found by trying all
/// cuts.
double brute_force(PartitionProblem const& problem,
                   std::size_t first,
                   std::size_t stages,
                   bool fused) {
  auto const left = problem.costs.size() - first;
  if (stages == 1) {
    return seconds_of(problem, {first, left}, fused);
  }
  auto best = infinite;
  for (std::size_t count = 0; count <= left; ++count) {
    best = std::min(best,
                    std::max(seconds_of(problem, {first, count}, false),
                             brute_force(problem, first + count, stages - 1, fused)));
  }
  return best;
}

/// The stages of all layers, in layer order, after checking that the partition is legal.
std::vector<LayerRange> places_of(PartitionProblem const& problem,
                                  Partition const& partition,
                                  std::size_t stages,
                                  bool fused) {
  std::vector<LayerRange> places(partition.backward.rbegin(), partition.backward.rend());
  REQUIRE(places.size() == stages);
  std::size_t next = 0;
  for (auto const& range : places) {
    CHECK(range.first == next);
    next = range.end();
  }
  CHECK(next == problem.costs.size());
  auto forward = places;
  if (fused) {
    forward.pop_back();
  }
  CHECK(partition.forward == forward);
  return places;
}

double slowest_of(PartitionProblem const& problem,
                  std::vector<LayerRange> const& places,
                  bool fused) {
  double slowest = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    slowest = std::max(slowest, seconds_of(problem, places[i], fused && i + 1 == places.size()));
  }
  return slowest;
}

PartitionProblem random_problem(Random& random) {
  PartitionProblem problem;
  problem.costs.resize(draw(random, 1, 7));
  for (auto& cost : problem.costs) {
    cost = {draw_seconds(random), draw_seconds(random)};
    if (draw(random, 0, 2) == 0) {
      cost.recompute_s = draw_seconds(random);
    }
  }
  return problem;
}

}  // namespace

TEST_CASE("the slowest stage is as fast as with the best of all cuts") {
  Random random(5);
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    auto const problem = random_problem(random);
    auto const stages = draw(random, 1, 5);
    for (auto const fused : {false, true}) {
      auto const partition = balanced_partition(problem, stages, fused);
      auto const places = places_of(problem, partition, stages, fused);
      REQUIRE(slowest_of(problem, places, fused) == brute_force(problem, 0, stages, fused));
    }
  }
}

TEST_CASE("under limits, the fused stage is checked as a backward stage only") {
  Random random(6);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    auto problem = random_problem(random);
    auto const forward = draw(random, 1, 4);
    auto const backward = draw(random, 1, 4);
    problem.fits = [=](StageDirection direction, LayerRange range) {
      CHECK(range.count > 0);
      return range.count <= (direction == StageDirection::forward ? forward : backward);
    };
    auto const stages = draw(random, 1, 5);
    for (auto const fused : {false, true}) {
      auto const best = brute_force(problem, 0, stages, fused);
      if (best == infinite) {
        CHECK(error_of([&] { (void)balanced_partition(problem, stages, fused); }).code() ==
              Errc::over_budget);
        ++refused;
        continue;
      }
      auto const partition = balanced_partition(problem, stages, fused);
      REQUIRE(slowest_of(problem, places_of(problem, partition, stages, fused), fused) == best);
    }
  }
  CHECK(refused > 20);
  CHECK(refused < 600);
}

TEST_CASE("equal layers are dealt evenly, longer stages last, and empty stages too") {
  PartitionProblem const problem{
      .costs = std::vector<LayerCost>(7, {1, 2}), .devices = 1, .micro_batches_per_call = 1};
  using Ranges = std::vector<LayerRange>;
  auto const places = [&](std::size_t stages, bool fused) {
    return places_of(problem, balanced_partition(problem, stages, fused), stages, fused);
  };
  CHECK(places(3, false) == Ranges{{0, 2}, {2, 2}, {4, 3}});
  CHECK(places(2, true) == Ranges{{0, 3}, {3, 4}});
  CHECK(places(9, false) ==
        Ranges{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 0}, {7, 0}});
  CHECK(places(9, true) ==
        Ranges{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 0}, {6, 0}, {6, 1}});
}

TEST_CASE("a fused stage takes more layers than others, because it recomputes none") {
  PartitionProblem const problem{
      .costs = std::vector<LayerCost>(10, {1, 1}), .devices = 1, .micro_batches_per_call = 1};
  auto const partition = balanced_partition(problem, 3, true);
  CHECK(partition.backward == std::vector<LayerRange>{{6, 4}, {3, 3}, {0, 3}});
  CHECK(partition.forward == std::vector<LayerRange>{{0, 3}, {3, 3}});
}

TEST_CASE("layers without cost are dealt, too") {
  PartitionProblem const problem{
      .costs = std::vector<LayerCost>(3, {0, 0}), .devices = 1, .micro_batches_per_call = 1};
  for (auto const fused : {false, true}) {
    auto const partition = balanced_partition(problem, 2, fused);
    CHECK(slowest_of(problem, places_of(problem, partition, 2, fused), fused) == 0);
  }
}

TEST_CASE("invalid problems are refused") {
  auto const code_of = [](PartitionProblem const& problem, std::size_t stages) {
    return error_of([&] { (void)balanced_partition(problem, stages, true); }).code();
  };
  PartitionProblem const good{.costs = {{1, 1}, {1, 1}}, .devices = 1, .micro_batches_per_call = 1};
  CHECK_FALSE(code_of(good, 2));
  CHECK(code_of({}, 2) == Errc::invalid_argument);
  CHECK(code_of(good, 0) == Errc::invalid_argument);
  for (auto const s : {-1.0, infinite, std::numeric_limits<double>::quiet_NaN()}) {
    for (auto const& cost : {LayerCost{s, 1}, LayerCost{1, s}, LayerCost{1, 1, s}}) {
      auto bad = good;
      bad.costs[1] = cost;
      CHECK(code_of(bad, 2) == Errc::invalid_argument);
    }
  }
  auto tight = good;
  tight.fits = [](StageDirection, LayerRange range) { return range.count < 2; };
  auto const error = error_of([&] { (void)balanced_partition(tight, 1, true); });
  CHECK(error.message().find("no 1 stages") != std::string::npos);
}

}  // namespace balanced_partition_test
