// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/even_cuts.hpp>
#include <roundpipe/partition/fitting_stages.hpp>
#include <roundpipe/partition/least_squares_cuts.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe {

namespace detail {

[[nodiscard]] ROUNDPIPE_INLINE LeastSquaresCuts cut_evenly(PartitionProblem const& problem,
                                                           StageTicks const& ticks,
                                                           StageDirection direction) {
  auto const layers = ticks.layers();
  auto const total = ticks.stage(direction, 0, layers);
  Ticks slowest = 0;
  for (std::size_t i = 0; i < layers; ++i) {
    slowest = std::max(slowest, ticks.stage(direction, i, i + 1));
  }
  auto const& sums = ticks.prefixes(direction);
  FittingStages fitting(problem, direction);
  return LeastSquaresCuts(
      layers - 1,
      layers,
      1,
      [&](std::size_t stage, std::size_t end) {
        auto const stages = static_cast<Ticks>(stage + 1);
        auto const longest = stages <= 2 ? total : 2 * (total / stages) + slowest;
        auto const least = sums[end] - longest;  // of the layers before the longest stage
        return static_cast<std::size_t>(std::lower_bound(sums.begin(), sums.end(), least) -
                                        sums.begin());
      },
      [&](std::size_t, std::size_t first, std::size_t end) {
        return static_cast<double>(ticks.stage(direction, first, end)) /
               static_cast<double>(std::max<Ticks>(total, 1));
      },
      [&](std::size_t first, std::size_t end) { return fitting.fits(first, end); });
}

ROUNDPIPE_INLINE EvenCuts::EvenCuts(PartitionProblem const& problem,
                                    StageTicks const& ticks,
                                    StageDirection direction)
    : direction_(direction), cuts_(cut_evenly(problem, ticks, direction)) {}

ROUNDPIPE_INLINE std::optional<std::vector<LayerRange>> EvenCuts::cut(std::size_t layers,
                                                                      std::size_t stages) const {
  auto ranges = cuts_.cut(stages, layers);
  if (ranges && direction_ == StageDirection::backward) {
    std::reverse(ranges->begin(), ranges->end());
  }
  return ranges;
}

}  // namespace detail

}  // namespace roundpipe
