// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/fitting_stages.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE FittingStages::FittingStages(PartitionProblem const& problem,
                                              StageDirection direction)
    : problem_(problem), direction_(direction), starts_(problem.costs.size()) {
  for (std::size_t first = 0; first < starts_.size(); ++first) {
    starts_[first].asked_end = problem.fits ? first : starts_.size();
    if (!problem.fits) {
      starts_[first].runs = {{first + 1, starts_.size()}};
    }
  }
}

ROUNDPIPE_INLINE std::span<FittingStages::Run const> FittingStages::runs(std::size_t first,
                                                                         std::size_t end) {
  auto& start = starts_[first];
  while (start.asked_end < end) {
    ++start.asked_end;
    if (!problem_.fits(direction_, {first, start.asked_end - first})) {
      continue;
    }
    if (!start.runs.empty() && start.runs.back().most_end + 1 == start.asked_end) {
      start.runs.back().most_end = start.asked_end;
    } else {
      start.runs.push_back({start.asked_end, start.asked_end});
    }
  }
  return start.runs;
}

ROUNDPIPE_INLINE bool FittingStages::fits(std::size_t first, std::size_t end) {
  auto const all = runs(first, end);
  return std::any_of(all.begin(), all.end(), [&](Run const& run) {
    return run.least_end <= end && end <= run.most_end;
  });
}

}  // namespace detail

}  // namespace roundpipe
