// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/level_policy.hpp>

#include <support/exhaustive_levels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace level_policy_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

using Levels = std::vector<std::size_t>;

}  // namespace

TEST_CASE("the levels spare as much as the best of all choices that stall nothing") {
  std::mt19937 random(20261123);
  std::size_t kept = 0;
  for (int i = 0; i < 500; ++i) {
    auto const candidates = random_candidates(random);
    auto const levels = choose_levels(candidates);
    CHECK(spared(candidates, levels) == best_by_trying(candidates));
    kept += static_cast<std::size_t>(
        std::count_if(levels.begin(), levels.end(), [](std::size_t level) { return level > 0; }));
    CHECK(choose_levels(candidates) == levels);
  }
  CHECK(kept > 500);
}

TEST_CASE("where the link carries everything, everything is kept; where nothing, nothing") {
  std::vector<SaveCandidate> candidates(10, {.compute = 8, .levels = {{2, 1, 0}, {8, 5, 0}}});
  limit_lag(candidates, 3);
  CHECK(choose_levels(candidates) == Levels(10, 2));
  for (auto& candidate : candidates) {
    candidate.levels = {{2, 1, -1}, {8, 5, -1}};
  }
  CHECK(choose_levels(candidates) == Levels(10, 0));
  CHECK(choose_levels({}).empty());
}

TEST_CASE("a link of half the speed carries half of the saves, evenly spread") {
  std::vector<SaveCandidate> candidates(32, {.compute = 10, .levels = {{20, 7, 0}}});
  limit_lag(candidates, 2);
  auto const levels = choose_levels(candidates);
  auto const kept = std::count(levels.begin(), levels.end(), 1U);
  CHECK(kept >= 16);
  CHECK(kept <= 17);  // the last may lag behind the end
  for (std::size_t i = 0; i + 4 < levels.size(); ++i) {
    auto const some = std::count(levels.begin() + static_cast<std::ptrdiff_t>(i),
                                 levels.begin() + static_cast<std::ptrdiff_t>(i + 4),
                                 1U);
    CHECK(some >= 1);
    CHECK(some <= 3);
  }
}

TEST_CASE("a ring of saves allows the lag of all its entries but one") {
  std::vector<SaveCandidate> candidates{{.compute = 5, .levels = {{4, 1, 0}, {30, 9, 0}}}};
  limit_lag(candidates, 1);
  CHECK(candidates[0].levels[0].most_lag == 0);
  limit_lag(candidates, 3);
  CHECK(candidates[0].levels[0].most_lag == 3);
  CHECK(candidates[0].levels[1].most_lag == 55);
}

}  // namespace level_policy_test
