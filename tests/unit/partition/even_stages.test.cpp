// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/even_stages.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace even_stages_test {

using namespace roundpipe;
using namespace roundpipe::detail;

namespace {

/// The layers of each stage when all but the last layer are cut into stages of at most \p most.
std::vector<std::size_t> counts(std::vector<LayerCost> costs,
                                StageDirection direction,
                                Ticks most) {
  PartitionProblem const problem{
      .costs = std::move(costs), .devices = 1, .micro_batches_per_call = 1};
  StageTicks const ticks(problem.costs);
  FewestStages fewest(problem, ticks, direction);
  auto const layer = ticks.stage(direction, 0, 1);
  fewest.cover(most * layer);
  std::vector<std::size_t> result;
  for (auto const& range : even_stages(fewest, problem.costs.size() - 1, most * layer)) {
    result.push_back(range.count);
  }
  return result;
}

}  // namespace

TEST_CASE("with equal layers, forward stages become longer and backward stages shorter") {
  using Counts = std::vector<std::size_t>;
  std::vector<LayerCost> const equal(12, {1, 2});
  CHECK(counts(equal, StageDirection::forward, 4) == Counts{3, 4, 4});
  CHECK(counts(equal, StageDirection::backward, 4) == Counts{4, 4, 3});
  CHECK(counts(equal, StageDirection::forward, 3) == Counts{2, 3, 3, 3});
  CHECK(counts(equal, StageDirection::backward, 20) == Counts{11});
  CHECK(counts({{1, 2}}, StageDirection::forward, 1).empty());
}

TEST_CASE("with unequal layers, the sum of squares is the smallest") {
  // 1 1 4 1 1 in two stages of at most 6: 2 + 6 or 6 + 2; 1 + 7 would be too long.
  std::vector<LayerCost> const costs{{1, 0}, {1, 0}, {4, 0}, {1, 0}, {1, 0}, {1, 0}};
  CHECK(counts(costs, StageDirection::forward, 6) == std::vector<std::size_t>{2, 3});
  CHECK(counts(costs, StageDirection::backward, 6) == std::vector<std::size_t>{3, 2});
}

}  // namespace even_stages_test
