// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a model into the stages with which round-robin calls are shortest when they are
/// simulated, one after another.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/partition_objective.hpp>
#include <roundpipe/plan/partitioner.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// The steady state of calls whose slots are dealt round robin, compute alone: copies, the
/// optimizer and dispatch take no time.
class SlotSimulation {
 public:
  SlotSimulation(std::span<LayerCost const> costs, std::size_t devices, std::size_t micro_batches)
      : costs_(costs), free_s_(devices), ends_s_(micro_batches) {}

  /// Seconds from call to call. A call is posted when the losses of the one before are there.
  [[nodiscard]] double call_seconds(Partition const& partition) {
    stages_.clear();
    for (auto const& range : partition.forward) {
      stages_.push_back({0, stage_seconds(costs_, StageDirection::forward, range)});
    }
    for (auto const& range : partition.backward) {
      auto const forward_s = stage_seconds(costs_, StageDirection::forward, range);
      stages_.push_back(
          {forward_s, stage_seconds(costs_, StageDirection::backward, range) - forward_s});
    }
    std::ranges::fill(free_s_, 0.0);
    // Slots come to the same devices again after so many calls.
    auto const period = free_s_.size() / std::gcd(free_s_.size(), stages_.size());
    auto const warm_up = period * (1 + 2 / period);
    posted_s_ = 0;
    device_ = 0;
    double warm_s = 0;
    double end_s = 0;
    for (std::size_t call = 0; call < warm_up + period; ++call) {
      run_call(partition.forward.size());
      end_s = *std::ranges::max_element(free_s_);
      warm_s = call + 1 == warm_up ? end_s : warm_s;
    }
    return (end_s - warm_s) / static_cast<double>(period);
  }

 private:
  /// What a stage does with a micro-batch: first what waits for nothing, then the rest.
  struct Times {
    double early_s = 0;
    double late_s = 0;
  };

  void run_call(std::size_t fused) {
    std::ranges::fill(ends_s_, posted_s_);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      auto& free_s = free_s_[device_];
      for (auto& end_s : ends_s_) {
        // The forward of the fused stage waits for its input; recomputation has its own for long.
        auto const early_s = i == fused ? std::max(free_s, end_s) : free_s;
        free_s = std::max(early_s + stages_[i].early_s, end_s) + stages_[i].late_s;
        end_s = free_s;
      }
      if (i == fused) {
        posted_s_ = free_s;
      }
      device_ = (device_ + 1) % free_s_.size();
    }
  }

  std::span<LayerCost const> costs_;
  std::vector<Times> stages_;
  std::vector<double> free_s_;  // by device
  std::vector<double> ends_s_;  // by micro-batch: of the latest stage
  double posted_s_ = 0;
  std::size_t device_ = 0;
};

/// For every number of layers from the model's first on, and every number of stages, the cut whose
/// slowest stage is fastest; by dynamic programming.
class EvenCuts {
 public:
  EvenCuts(PartitionProblem const& problem, StageDirection direction, std::size_t most_stages)
      : layers_(problem.costs.size()) {
    auto const all = std::size_t{layers_ + 1};
    std::vector<double> seconds(all * all, unreachable);
    for (std::size_t first = 0; first < layers_; ++first) {
      for (auto end = first + 1; end <= layers_; ++end) {
        LayerRange const range{first, end - first};
        if (!problem.fits || problem.fits(direction, range)) {
          seconds[first * all + end] = stage_seconds(problem.costs, direction, range);
        }
      }
    }
    slowest_s_.assign((most_stages + 1) * all, unreachable);
    last_first_.assign((most_stages + 1) * all, 0);
    slowest_s_[0] = 0;
    for (std::size_t stages = 1; stages <= most_stages; ++stages) {
      for (std::size_t end = 1; end <= layers_; ++end) {
        for (std::size_t first = 0; first < end; ++first) {
          auto const slowest_s =
              std::max(slowest_s_[(stages - 1) * all + first], seconds[first * all + end]);
          if (slowest_s < slowest_s_[stages * all + end]) {
            slowest_s_[stages * all + end] = slowest_s;
            last_first_[stages * all + end] = first;
          }
        }
      }
    }
  }

  /// The cut of the first \p layers layers into \p stages stages, in layer order; nothing when none
  /// fits.
  [[nodiscard]] std::optional<std::vector<LayerRange>> cut(std::size_t layers,
                                                           std::size_t stages) const {
    auto const all = layers_ + 1;
    if (slowest_s_[stages * all + layers] == unreachable) {
      return std::nullopt;
    }
    std::vector<LayerRange> ranges(stages);
    for (auto end = layers; stages > 0; --stages) {
      auto const first = last_first_[stages * all + end];
      ranges[stages - 1] = {first, end - first};
      end = first;
    }
    return ranges;
  }

 private:
  static constexpr double unreachable = std::numeric_limits<double>::infinity();

  std::size_t layers_;
  std::vector<double> slowest_s_;        // by stages, then layers
  std::vector<std::size_t> last_first_;  // likewise: where the last stage begins
};

}  // namespace detail

/// \brief Tries fused stages of every size, and forward and backward cuts of every number of
/// stages, each as even as can be, and takes what \ref detail::SlotSimulation says is fastest.
///
/// \ref Partitioner minimizes a bound in which every stage takes as long as the slowest. This one
/// sees what a larger fused stage saves (its layers' forward is not run twice) and what unequal
/// stages cost; it is exact in neither cuts nor copies, and takes milliseconds to a second where
/// the bound takes microseconds. Of partitions within a thousandth of the fastest, the one with the
/// fewest stages is taken: it moves the fewest bytes.
class SimulatedPartitioner {
 public:
  /// \throws Error as \ref Partitioner::partition.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    auto best = Partitioner{}.partition(problem);  // it refuses what makes no sense
    auto const layers = problem.costs.size();
    auto const most = std::min(layers, 4 * problem.devices + 12);
    detail::EvenCuts const forward(problem, StageDirection::forward, most);
    detail::EvenCuts const backward(problem, StageDirection::backward, most);
    detail::SlotSimulation simulation(problem.costs, problem.devices, problem.micro_batches);
    auto best_s = simulation.call_seconds(best);
    for (auto fused = layers; fused > 0; --fused) {
      LayerRange const last{layers - fused, fused};
      if (problem.fits && !problem.fits(StageDirection::backward, last)) {
        continue;
      }
      if (least_seconds(problem, fused) > best_s) {
        break;  // smaller fused stages compute even more
      }
      // Fewer stages first: more have to be worth it.
      for (std::size_t stages = 0; stages <= 2 * most; ++stages) {
        for (std::size_t f = stages > most ? stages - most : 0; f <= std::min(stages, most); ++f) {
          auto const before = forward.cut(last.first, f);
          auto const after = backward.cut(last.first, stages - f);
          if (!before || !after) {
            continue;
          }
          Partition candidate{*before, {last}};
          candidate.backward.insert(candidate.backward.end(), after->rbegin(), after->rend());
          auto const seconds = simulation.call_seconds(candidate);
          auto const margin = candidate.size() < best.size() ? 1 + tolerance : 1 - tolerance;
          if (seconds < best_s * margin) {
            best = std::move(candidate);
            best_s = std::min(best_s, seconds);
          }
        }
      }
    }
    return best;
  }

 private:
  static constexpr double tolerance = 1e-3;

  /// What a call takes at least, with so many layers in the fused stage: devices always busy.
  static double least_seconds(PartitionProblem const& problem, std::size_t fused) {
    std::span const costs(problem.costs);
    auto const before = costs.size() - fused;
    auto const work = stage_seconds(costs, StageDirection::backward, {0, costs.size()}) +
                      stage_seconds(costs, StageDirection::forward, {0, before});
    return work * static_cast<double>(problem.micro_batches) / static_cast<double>(problem.devices);
  }
};

static_assert(PartitionPolicy<SimulatedPartitioner>);

}  // namespace roundpipe
