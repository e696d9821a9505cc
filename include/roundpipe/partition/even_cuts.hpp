// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The most even cut of a model's first layers into any number of stages.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/fitting_stages.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// \brief For every number of a model's first layers and every number of stages the cut with the
/// least sum of squared times, by dynamic programming.
///
/// Of equals, forward stages become longer and backward stages shorter in execution order. Stages
/// that take longer than twice the mean and the slowest layer are not tried, so that all cuts take
/// O(L^2 log L) steps.
class EvenCuts {
 public:
  /// \p problem and \p ticks must outlive it.
  EvenCuts(PartitionProblem const& problem, StageTicks const& ticks, StageDirection direction)
      : ticks_(ticks), direction_(direction), layers_(ticks.layers()) {
    FittingStages fitting(problem, direction);
    auto const total = ticks.stage(direction, 0, layers_);
    squares_.assign(layers_ * layers_, unreachable);
    begins_.assign(layers_ * layers_, 0);
    squares_[0] = 0;
    for (std::size_t stages = 1; stages < layers_; ++stages) {
      auto const longest =
          stages <= 2 ? total : 2 * (total / static_cast<Ticks>(stages)) + slowest();
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

  /// The cut of the first \p layers layers into \p stages stages, in execution order; nothing when
  /// there is none.
  [[nodiscard]] std::optional<std::vector<LayerRange>> cut(std::size_t layers,
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

 private:
  static constexpr double unreachable = std::numeric_limits<double>::infinity();

  [[nodiscard]] std::size_t at(std::size_t stages, std::size_t end) const noexcept {
    return stages * layers_ + end;
  }
  [[nodiscard]] Ticks slowest() const {
    Ticks slowest = 0;
    for (std::size_t i = 0; i < layers_; ++i) {
      slowest = std::max(slowest, ticks_.stage(direction_, i, i + 1));
    }
    return slowest;
  }

  StageTicks const& ticks_;
  StageDirection direction_;
  std::size_t layers_;
  std::vector<double> squares_;      // by stages, then layers
  std::vector<std::size_t> begins_;  // likewise: where the last stage in layer order begins
};

}  // namespace roundpipe::detail
