// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/fitting_stages.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace fitting_stages_test {

using namespace roundpipe;
using detail::FittingStages;

TEST_CASE("without limits the stages that begin with a layer are one run") {
  PartitionProblem const problem{
      .costs = std::vector<LayerCost>(5), .devices = 1, .micro_batches_per_call = 1};
  FittingStages stages(problem, StageDirection::forward);
  for (std::size_t first = 0; first < 5; ++first) {
    auto const runs = stages.runs(first, 5);
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].least_end == first + 1);
    CHECK(runs[0].most_end == 5);
  }
}

TEST_CASE("the answers match the problem, and each stage is asked about once, when needed") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    std::size_t const layers = 1 + random() % 8;
    std::vector<bool> yes(layers * (layers + 1));
    for (std::size_t k = 0; k < yes.size(); ++k) {
      yes[k] = random() % 3 != 0;
    }
    std::map<std::pair<std::size_t, std::size_t>, int> asked;
    PartitionProblem problem{
        .costs = std::vector<LayerCost>(layers), .devices = 1, .micro_batches_per_call = 1};
    problem.fits = [&](StageDirection direction, LayerRange range) {
      CHECK(direction == StageDirection::backward);
      ++asked[{range.first, range.end()}];
      return static_cast<bool>(yes[range.first * (layers + 1) + range.end()]);
    };
    FittingStages stages(problem, StageDirection::backward);
    CHECK(asked.empty());
    for (int k = 0; k < 50; ++k) {
      auto const first = random() % layers;
      auto const end = first + 1 + random() % (layers - first);
      CHECK(stages.fits(first, end) == yes[first * (layers + 1) + end]);
    }
    for (auto const& [range, times] : asked) {
      CHECK(times == 1);
    }
  }
}

TEST_CASE("stages beyond the requested length are not asked about") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(9), .devices = 1, .micro_batches_per_call = 1};
  problem.fits = [](StageDirection, LayerRange range) {
    CHECK(range.count <= 3);
    return range.count != 2;
  };
  FittingStages stages(problem, StageDirection::forward);
  auto const runs = stages.runs(4, 7);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].most_end == 5);
  CHECK(runs[1].least_end == 7);
}

}  // namespace fitting_stages_test
