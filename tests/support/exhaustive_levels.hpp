// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The best save levels, by trying all: the oracle of \ref choose_levels.

#include <roundpipe/plan/level_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace roundpipe::test {

/// What \p levels spare; nothing where a save would stall compute. Written as the documentation
/// says, with clocks instead of lags.
[[nodiscard]] inline std::optional<std::int64_t> spared(std::span<SaveCandidate const> candidates,
                                                        std::span<std::size_t const> levels) {
  std::int64_t now = 0;        // of the compute
  std::int64_t link_free = 0;  // of the link
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    now += candidates[i].compute;
    if (levels[i] > 0) {
      auto const& worth = candidates[i].levels[levels[i] - 1];
      if (std::max<std::int64_t>(link_free - now, 0) > worth.most_lag) {
        return std::nullopt;
      }
      link_free = std::max(link_free, now) + worth.transfer;
      sum += worth.spared;
    }
  }
  return sum;
}

/// The most that any levels spare, by trying all.
[[nodiscard]] inline std::int64_t best_by_trying(std::span<SaveCandidate const> candidates) {
  std::int64_t best = 0;
  std::vector<std::size_t> levels(candidates.size(), 0);
  for (bool more = true; more;) {
    best = std::max(best, spared(candidates, levels).value_or(0));
    more = false;
    for (std::size_t i = 0; i < levels.size() && !more; ++i) {
      more = levels[i] < candidates[i].levels.size();
      levels[i] = more ? levels[i] + 1 : 0;
    }
  }
  return best;
}

/// Up to seven saves, each with up to three levels above nothing.
[[nodiscard]] inline std::vector<SaveCandidate> random_candidates(std::mt19937& random) {
  auto const number = [&](int most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  std::vector<SaveCandidate> candidates(static_cast<std::size_t>(1 + number(6)));
  for (auto& candidate : candidates) {
    candidate.compute = number(20);
    std::int64_t transfer = 0;
    std::int64_t worth = 0;
    for (auto levels = number(3); levels > 0; --levels) {
      candidate.levels.push_back({transfer += number(15), worth += number(10), number(30) - 3});
    }
  }
  return candidates;
}

}  // namespace roundpipe::test
