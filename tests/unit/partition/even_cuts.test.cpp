// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/even_cuts.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>
#include <optional>
#include <random>
#include <vector>

namespace even_cuts_test {

namespace {

using namespace roundpipe;
using detail::EvenCuts;
using detail::StageTicks;

std::vector<std::size_t> counts(std::optional<std::vector<LayerRange>> const& ranges) {
  std::vector<std::size_t> result;
  if (ranges) {
    std::ranges::transform(*ranges, std::back_inserter(result), &LayerRange::count);
  }
  return result;
}

}  // namespace

TEST_CASE("equal layers are cut into any number of stages that differ by at most one layer") {
  PartitionProblem const problem{
      .costs = std::vector<LayerCost>(20, {1, 2}), .devices = 1, .micro_batches_per_call = 1};
  StageTicks const ticks(problem.costs);
  EvenCuts const forward(problem, ticks, StageDirection::forward);
  EvenCuts const backward(problem, ticks, StageDirection::backward);
  for (std::size_t layers = 1; layers < 20; ++layers) {
    for (std::size_t stages = 1; stages <= layers; ++stages) {
      std::vector<std::size_t> expected(stages, layers / stages);
      for (std::size_t i = 0; i < layers % stages; ++i) {
        ++expected[stages - 1 - i];
      }
      CHECK(counts(forward.cut(layers, stages)) == expected);
      std::ranges::reverse(expected);
      CHECK(counts(backward.cut(layers, stages)) == expected);
    }
    CHECK_FALSE(forward.cut(layers, layers + 1 < 20 ? layers + 1 : 0).has_value());
  }
  CHECK(forward.cut(0, 0).has_value());
}

TEST_CASE("cuts lie in execution order, cover their layers, and fit") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 50; ++i) {
    PartitionProblem problem{.costs = std::vector<LayerCost>(2 + random() % 12),
                             .devices = 1,
                             .micro_batches_per_call = 1};
    for (auto& cost : problem.costs) {
      cost = {static_cast<double>(random() % 9), static_cast<double>(random() % 9)};
    }
    problem.fits = [](StageDirection, LayerRange range) {
      return range.count <= 3 && range.first % 4 != 1;
    };
    StageTicks const ticks(problem.costs);
    for (auto const direction : {StageDirection::forward, StageDirection::backward}) {
      EvenCuts const cuts(problem, ticks, direction);
      for (std::size_t layers = 1; layers < problem.costs.size(); ++layers) {
        for (std::size_t stages = 1; stages <= layers; ++stages) {
          auto ranges = cuts.cut(layers, stages);
          if (!ranges) {
            continue;
          }
          CHECK(ranges->size() == stages);
          if (direction == StageDirection::backward) {
            std::ranges::reverse(*ranges);
          }
          std::size_t next = 0;
          for (auto const& range : *ranges) {
            CHECK(range.first == next);
            CHECK(range.count > 0);
            CHECK(problem.fits(direction, range));
            next = range.end();
          }
          CHECK(next == layers);
        }
      }
    }
  }
}

}  // namespace even_cuts_test
