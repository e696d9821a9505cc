// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/even_cuts.hpp>
#include <roundpipe/partition/fitting_stages.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE EvenCuts::EvenCuts(PartitionProblem const& problem,
                                    StageTicks const& ticks,
                                    StageDirection direction)
    : ticks_(ticks), direction_(direction), layers_(ticks.layers()) {
  FittingStages fitting(problem, direction);
  auto const total = ticks.stage(direction, 0, layers_);
  squares_.assign(layers_ * layers_, unreachable);
  begins_.assign(layers_ * layers_, 0);
  squares_[0] = 0;
  for (std::size_t stages = 1; stages < layers_; ++stages) {
    auto const longest = stages <= 2 ? total : 2 * (total / static_cast<Ticks>(stages)) + slowest();
    for (auto end = stages; end < layers_; ++end) {
      auto& least = squares_[at(stages, end)];
      for (auto first = end; first-- > 0 && ticks.stage(direction, first, end) <= longest;) {
        auto const before = squares_[at(stages - 1, first)];
        if (before == unreachable) {
          continue;
        }
        auto const share = static_cast<double>(ticks.stage(direction, first, end)) /
                           static_cast<double>(std::max<Ticks>(total, 1));
        auto const squares = before + share * share;
        // Long last stages, in layer order, for both: forward ones come last in execution order,
        // backward ones first. Sums are rounded: what differs in the last digits only is equal.
        if (squares <= least * (1 + 1e-9) && squares < unreachable && fitting.fits(first, end)) {
          least = squares;
          begins_[at(stages, end)] = first;
        }
      }
    }
  }
}

ROUNDPIPE_INLINE std::optional<std::vector<LayerRange>> EvenCuts::cut(std::size_t layers,
                                                                      std::size_t stages) const {
  if (squares_[at(stages, layers)] == unreachable) {
    return std::nullopt;
  }
  std::vector<LayerRange> ranges;
  for (auto end = layers; stages > 0; --stages) {
    auto const first = begins_[at(stages, end)];
    ranges.push_back({first, end - first});
    end = first;
  }
  if (direction_ == StageDirection::forward) {
    std::ranges::reverse(ranges);
  }
  return ranges;
}

ROUNDPIPE_INLINE Ticks EvenCuts::slowest() const {
  Ticks slowest = 0;
  for (std::size_t i = 0; i < layers_; ++i) {
    slowest = std::max(slowest, ticks_.stage(direction_, i, i + 1));
  }
  return slowest;
}

}  // namespace detail

}  // namespace roundpipe
