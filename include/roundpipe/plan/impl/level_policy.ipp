// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/plan/level_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
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

/// Ascending in lag; of equals, the one that spares most comes first.
[[nodiscard]] inline bool comes_before(LevelState const& a, LevelState const& b) noexcept {
  return a.lag != b.lag ? a.lag < b.lag : a.spared > b.spared;
}

/// Keeps of \p states, which are in order, those that no other one beats: ascending in spared time,
/// too.
ROUNDPIPE_INLINE void keep_best(std::vector<LevelState>& states) {
  std::size_t kept = 0;
  for (auto const& state : states) {
    if (kept == 0 || state.spared > states[kept - 1].spared) {
      states[kept++] = state;
    }
  }
  states.resize(kept);
}

/// The choices for a candidate behind those of \p before.
[[nodiscard]] ROUNDPIPE_INLINE std::vector<LevelState> next_states(
    std::vector<LevelState> const& before, SaveCandidate const& candidate) {
  // Of all whose lag the forward makes up for, the last one spares most.
  auto first = before.size();
  while (first > 1 && before[first - 1].lag > candidate.compute) {
    --first;
  }
  --first;
  std::vector<LevelState> after;
  auto const add = [&](std::size_t level, LevelWorth const& worth) {
    auto const middle = static_cast<std::ptrdiff_t>(after.size());
    for (auto s = first; s < before.size(); ++s) {
      auto const lag = std::max<std::int64_t>(before[s].lag - candidate.compute, 0);
      if (lag > worth.most_lag) {
        break;
      }
      after.push_back({lag + worth.transfer, before[s].spared + worth.spared, s, level});
    }
    std::inplace_merge(after.begin(), after.begin() + middle, after.end(), comes_before);
  };
  add(0, {.most_lag = std::numeric_limits<std::int64_t>::max()});
  for (std::size_t l = 0; l < candidate.levels.size(); ++l) {
    add(l + 1, candidate.levels[l]);
  }
  keep_best(after);
  return after;
}

}  // namespace detail

ROUNDPIPE_INLINE void limit_lag(std::span<SaveCandidate> candidates, std::size_t entries) {
  auto const others = static_cast<std::int64_t>(entries) - 1;
  for (auto& candidate : candidates) {
    for (auto& level : candidate.levels) {
      level.most_lag = std::max<std::int64_t>(others * level.transfer - candidate.compute, 0);
    }
  }
}

ROUNDPIPE_INLINE std::vector<std::size_t> choose_levels(std::span<SaveCandidate const> candidates) {
  std::vector<std::vector<detail::LevelState>> states{{detail::LevelState{}}};
  for (auto const& candidate : candidates) {
    states.push_back(detail::next_states(states.back(), candidate));
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
