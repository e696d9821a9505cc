// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which stages fit into a device: asked once each, and not before it matters.

#include <roundpipe/concepts/partition_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe::detail {

/// What \c PartitionProblem::fits says of the stages of one direction that do not hold the last
/// layer.
class FittingStages {
 public:
  /// Stages [first, end) for all ends of a run fit.
  struct Run {
    std::size_t least_end = 0;
    std::size_t most_end = 0;
  };

  /// \p problem must outlive it.
  FittingStages(PartitionProblem const& problem, StageDirection direction)
      : problem_(problem), direction_(direction), starts_(problem.costs.size()) {
    for (std::size_t first = 0; first < starts_.size(); ++first) {
      starts_[first].asked_end = problem.fits ? first : starts_.size();
      if (!problem.fits) {
        starts_[first].runs = {{first + 1, starts_.size()}};
      }
    }
  }

  /// The stages that begin with layer \p first and fit, in order; complete up to those that end
  /// before \p end, at least.
  [[nodiscard]] std::span<Run const> runs(std::size_t first, std::size_t end) {
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

  /// Whether the layers [first, end) fit.
  [[nodiscard]] bool fits(std::size_t first, std::size_t end) {
    auto const all = runs(first, end);
    return std::ranges::any_of(
        all, [&](Run const& run) { return run.least_end <= end && end <= run.most_end; });
  }

 private:
  struct Start {
    std::vector<Run> runs;
    std::size_t asked_end = 0;  ///< Longer stages have not been asked for.
  };

  PartitionProblem const& problem_;
  StageDirection direction_;
  std::vector<Start> starts_;
};

}  // namespace roundpipe::detail
