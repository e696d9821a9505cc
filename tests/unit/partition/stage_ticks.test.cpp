// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/stage_ticks.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace stage_ticks_test {

using namespace roundpipe;
using detail::StageTicks;

TEST_CASE("stages of equal layers take equally many ticks, wherever they lie") {
  StageTicks const ticks(std::vector<LayerCost>(100, {0.1, 0.7}));
  for (std::size_t count = 1; count < 100; ++count) {
    for (std::size_t first = 0; first + count <= 100; ++first) {
      for (auto const direction : {StageDirection::forward, StageDirection::backward}) {
        REQUIRE(ticks.stage(direction, first, first + count) == ticks.stage(direction, 0, count));
      }
    }
  }
}

TEST_CASE(
    "ticks are proportional to seconds, and the fused stage runs a forward, no recomputation") {
  std::vector<LayerCost> const costs{{1, 2, 5}, {3, 4}, {0.5, 0.25, 0}};
  StageTicks const ticks(costs);
  auto const unit = ticks.stage(StageDirection::forward, 0, 1);
  CHECK(unit > 0);
  CHECK(ticks.stage(StageDirection::forward, 0, 2) == 4 * unit);
  CHECK(ticks.stage(StageDirection::backward, 0, 2) == 14 * unit);
  CHECK(ticks.fused(2) * 4 == 3 * unit);
  CHECK(ticks.fused(0) * 4 == 43 * unit);
  CHECK(ticks.slowest_layer() == 7 * unit);  // layer 1, in either direction
  CHECK(ticks.whole_model() * 4 == (28 + 28 + 1) * unit);
  CHECK(ticks.first_fused(unit) == 2);
  CHECK(ticks.first_fused(unit / 2) == 3);
  CHECK(ticks.first_fused(8 * unit) == 1);
  CHECK(ticks.first_fused(100 * unit) == 0);
}

TEST_CASE("the last layer is in the fused stage, however cheap its recomputation would be") {
  std::vector<LayerCost> const costs{{1, 1}, {5, 2, 0}};
  StageTicks const ticks(costs);
  CHECK(ticks.slowest_layer() == 7 * ticks.stage(StageDirection::forward, 0, 1));
}

TEST_CASE("sums of ticks agree with sums of seconds, however long or short") {
  std::mt19937_64 random(1);
  for (auto const scale : {1.0, 0x1p-1000, 0x1p+900}) {
    std::vector<LayerCost> costs(1000);
    double sum = 0;
    for (auto& cost : costs) {
      cost.forward_s = std::uniform_real_distribution<double>(0, 1)(random) * scale;
      sum += cost.forward_s / scale;
    }
    StageTicks const ticks(costs);
    auto const all = ticks.stage(StageDirection::forward, 0, costs.size());
    auto const first = ticks.stage(StageDirection::forward, 0, 1);
    CHECK(static_cast<double>(first) / static_cast<double>(all) ==
          doctest::Approx(costs[0].forward_s / scale / sum).epsilon(1e-12));
  }
  CHECK(StageTicks(std::vector<LayerCost>(3)).whole_model() == 0);
}

}  // namespace stage_ticks_test
