// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/plan/level_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// The best choice that leaves the link so far behind.
struct LevelState {
  std::int64_t lag = 0;
  std::int64_t spared = 0;
  std::size_t before = 0;  ///< The state that it comes from, among those of the candidate before.
  std::size_t level = 0;
};

/// Keeps of \p states those that no other one beats: ascending in lag and in spared time.
ROUNDPIPE_INLINE void keep_best(std::vector<LevelState>& states) {
  std::stable_sort(states.begin(), states.end(), [](LevelState const& a, LevelState const& b) {
    return a.lag != b.lag ? a.lag < b.lag : a.spared > b.spared;
  });
  std::size_t kept = 0;
  for (auto const& state : states) {
    if (kept == 0 || state.spared > states[kept - 1].spared) {
      states[kept++] = state;
    }
  }
  states.resize(kept);
}

}  // namespace detail

ROUNDPIPE_INLINE void set_slack(std::span<SaveCandidate> candidates, std::size_t saves) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].slack = 0;
    for (std::size_t j = i + 1; j < std::min(i + saves, candidates.size()); ++j) {
      candidates[i].slack += candidates[j].compute;
    }
  }
}

ROUNDPIPE_INLINE std::vector<std::size_t> choose_levels(std::span<SaveCandidate const> candidates) {
  std::vector<std::vector<detail::LevelState>> states{{detail::LevelState{}}};
  for (auto const& candidate : candidates) {
    auto const& before = states.back();
    std::vector<detail::LevelState> after;
    for (std::size_t s = 0; s < before.size(); ++s) {
      auto const lag =
          std::max<std::int64_t>(before[s].lag - candidate.compute, 0) + candidate.copied;
      after.push_back({lag, before[s].spared, s, 0});
      for (std::size_t l = 0; l < candidate.levels.size(); ++l) {
        auto const& worth = candidate.levels[l];
        if (lag + worth.transfer <= candidate.slack) {
          after.push_back({lag + worth.transfer, before[s].spared + worth.spared, s, l + 1});
        }
      }
    }
    detail::keep_best(after);
    states.push_back(std::move(after));
  }
  std::vector<std::size_t> levels(candidates.size());
  auto state = states.back().size() - 1;  // the one that spares most
  for (std::size_t i = candidates.size(); i-- > 0;) {
    levels[i] = states[i + 1][state].level;
    state = states[i + 1][state].before;
  }
  return levels;
}

}  // namespace roundpipe
