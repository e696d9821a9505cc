// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/partition/balanced_partition.hpp>
#include <roundpipe/partition/least_squares_cuts.hpp>
#include <roundpipe/partition/partition_check.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// The search behind \ref balanced_partition: dynamic programming over stages and their ends.
class BalancedCuts {
 public:
  BalancedCuts(PartitionProblem const& problem, std::size_t stages, bool fused)
      : stages_(stages), ends_(problem.costs.size() + 1) {
    for (auto const last : {false, true}) {
      auto& table = last ? last_s_ : seconds_;
      table.resize(ends_ * ends_);
      for (std::size_t first = 0; first < ends_; ++first) {
        double sum = 0;
        for (auto end = first + 1; end < ends_; ++end) {
          auto const once = last && fused;
          sum += place_seconds(problem.costs[end - 1], once);
          table[first * ends_ + end] =
              fits(problem, {first, end - first}, once) ? sum : unreachable;
        }
      }
    }
  }

  /// The stages in layer order; none when no stages fit.
  [[nodiscard]] std::vector<LayerRange> run() const {
    auto const slowest_s = slowest();
    return slowest_s < unreachable ? even(slowest_s) : std::vector<LayerRange>{};
  }

 private:
  static constexpr double unreachable = std::numeric_limits<double>::infinity();

  static bool fits(PartitionProblem const& problem, LayerRange range, bool fused) {
    return !problem.fits || (problem.fits(StageDirection::backward, range) &&
                             (fused || problem.fits(StageDirection::forward, range)));
  }
  [[nodiscard]] double seconds(std::size_t stage, std::size_t first, std::size_t end) const {
    return (stage + 1 == stages_ ? last_s_ : seconds_)[first * ends_ + end];
  }

  /// The least time of the slowest stage; infinite when no cut fits.
  [[nodiscard]] double slowest() const {
    std::vector<double> least(ends_, unreachable);  // by where the stages so far end
    least[0] = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      std::vector<double> next(ends_, unreachable);
      for (std::size_t end = 0; end < ends_; ++end) {
        for (std::size_t first = 0; first <= end; ++first) {
          next[end] = std::min(next[end], std::max(least[first], seconds(stage, first, end)));
        }
      }
      least = std::move(next);
    }
    return least.back();
  }

  /// Of the cuts without a stage slower than \p slowest_s the one with the least sum of squared
  /// times; of equals the one with the longest stages last.
  [[nodiscard]] std::vector<LayerRange> even(double slowest_s) const {
    LeastSquaresCuts const cuts(
        stages_,
        ends_,
        0,
        [](std::size_t, std::size_t) { return std::size_t{0}; },
        [&](std::size_t stage, std::size_t first, std::size_t end) {
          auto const s = seconds(stage, first, end);
          return s > slowest_s ? unreachable : s > 0 ? s / slowest_s : 0;
        },
        [](std::size_t, std::size_t) { return true; });
    return *cuts.cut(stages_, ends_ - 1);
  }

  std::size_t stages_;
  std::size_t ends_;             // where a stage may end: before, between and after the layers
  std::vector<double> seconds_;  // by first layer and end
  std::vector<double> last_s_;   // likewise, of the last stage
};

}  // namespace detail

ROUNDPIPE_INLINE Partition balanced_partition(PartitionProblem const& problem,
                                              std::size_t stages,
                                              bool fused) {
  auto const layers = problem.costs.size();
  check(problem.costs);
  require(stages > 0, Errc::invalid_argument, "a partition has at least one stage");
  auto const used = std::min(stages, layers);
  auto ranges = detail::BalancedCuts(problem, used, fused).run();
  if (ranges.empty()) {
    throw Error(Errc::over_budget,
                "no " + std::to_string(stages) +
                    " stages that hold their layers both forward and backward fit into a device; "
                    "more stages or smaller micro-batches would help");
  }
  auto const place = ranges.end() - (fused ? 1 : 0);
  ranges.insert(place, stages - used, {fused ? ranges.back().first : layers, 0});
  Partition partition{ranges, {ranges.rbegin(), ranges.rend()}};
  if (fused) {
    partition.forward.pop_back();
  }
  return partition;
}

}  // namespace roundpipe
