// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/fewest_stages.hpp>
#include <roundpipe/partition/fitting_stages.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE Ticks FewestStages::cover(Ticks t_max) {
  auto const next = find_last_ends(t_max);
  std::fill(stages_.begin(), stages_.end(), unreachable);
  std::iota(open_.begin(), open_.end(), std::size_t{0});
  reached_.assign(1, 0);
  stages_[0] = 0;
  open_[0] = 1;
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    auto const first = reached_[i];
    auto const last = last_ends_[first];
    if (first_open(first + 1) > last) {
      continue;
    }
    for (auto const& run : fitting_.runs(first, last)) {
      auto const most = std::min(run.most_end, last);
      for (auto end = first_open(run.least_end); end <= most; end = first_open(end + 1)) {
        stages_[end] = stages_[first] + 1;
        before_[end] = first;
        open_[end] = end + 1;
        reached_.push_back(end);
      }
    }
  }
  return next;
}

ROUNDPIPE_INLINE Ticks FewestStages::slowest(std::size_t count) const {
  Ticks slowest = 0;
  for (auto end = count; end > 0; end = before_[end]) {
    slowest = std::max(slowest, ticks_.stage(direction_, before_[end], end));
  }
  return slowest;
}

ROUNDPIPE_INLINE Ticks FewestStages::find_last_ends(Ticks t_max) {
  auto const& sums = ticks_.prefixes(direction_);
  auto next = std::numeric_limits<Ticks>::max();
  std::size_t end = 0;
  for (std::size_t first = 0; first < last_ends_.size(); ++first) {
    end = std::max(end, first);
    while (end + 1 < last_ends_.size() && sums[end + 1] - sums[first] <= t_max) {
      ++end;
    }
    last_ends_[first] = end;
    if (end + 1 < last_ends_.size()) {
      next = std::min(next, sums[end + 1] - sums[first]);
    }
  }
  return next;
}

ROUNDPIPE_INLINE std::size_t FewestStages::first_open(std::size_t count) {
  auto open = count;
  while (open_[open] != open) {
    open_[open] = open_[open_[open]];  // keeps later look-ups short
    open = open_[open];
  }
  return open;
}

}  // namespace detail

}  // namespace roundpipe
