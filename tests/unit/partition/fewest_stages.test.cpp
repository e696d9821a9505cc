// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/fewest_stages.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

namespace fewest_stages_test {

using namespace roundpipe;
using detail::FewestStages;
using detail::StageTicks;
using detail::Ticks;

TEST_CASE("the fewest stages match dynamic programming under any limits") {
  std::mt19937_64 random(2);
  constexpr auto never = std::numeric_limits<std::size_t>::max();
  for (int i = 0; i < 500; ++i) {
    CAPTURE(i);
    PartitionProblem problem{.costs = std::vector<LayerCost>(2 + random() % 12),
                             .devices = 1,
                             .micro_batches_per_call = 1};
    auto const layers = problem.costs.size();
    for (auto& cost : problem.costs) {
      cost = {static_cast<double>(random() % 5), static_cast<double>(random() % 9)};
    }
    auto const salt = random();
    if (i % 3 > 0) {
      problem.fits = [salt, i](StageDirection, LayerRange range) {
        return i % 3 == 1 ? range.count < 4
                          : std::mt19937_64(salt + 100 * range.first + range.count)() % 3 != 0;
      };
    }
    StageTicks const ticks(problem.costs);
    for (auto const direction : {StageDirection::forward, StageDirection::backward}) {
      FewestStages fewest(problem, ticks, direction);
      auto t_max = ticks.slowest_layer() / 2;
      for (int search = 0; search < 4; ++search) {
        auto const next = fewest.cover(t_max);
        auto least_next = std::numeric_limits<Ticks>::max();
        std::vector<std::size_t> expected(layers, never);
        expected[0] = 0;
        for (std::size_t end = 1; end < layers; ++end) {
          for (std::size_t first = 0; first < end; ++first) {
            auto const stage = ticks.stage(direction, first, end);
            if (stage > t_max) {
              least_next = std::min(least_next, stage);
            } else if (expected[first] != never &&
                       (!problem.fits || problem.fits(direction, {first, end - first}))) {
              expected[end] = std::min(expected[end], expected[first] + 1);
            }
          }
        }
        CHECK(next == least_next);
        for (std::size_t count = 0; count < layers; ++count) {
          REQUIRE(fewest.reaches(count) == (expected[count] != never));
          if (fewest.reaches(count)) {
            CHECK(fewest.stages(count) == expected[count]);
            CHECK(fewest.slowest(count) <= t_max);
          }
        }
        t_max = std::min(next, ticks.whole_model());
      }
    }
  }
}

}  // namespace fewest_stages_test
