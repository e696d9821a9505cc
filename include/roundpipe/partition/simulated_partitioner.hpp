// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a model into the stages, and a call into the rounds, that are fastest when they are
/// simulated.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/even_cuts.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/round_partition.hpp>
#include <roundpipe/partition/slot_simulation.hpp>
#include <roundpipe/partition/stage_moves.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// One search for the partition that is simulated as fastest.
class SimulatedSearch {
 public:
  /// \p problem must outlive it.
  SimulatedSearch(PartitionProblem const& problem, SlotSimulationOptions const& options)
      : problem_(problem),
        asynchronous_(options.asynchronous),
        rounds_(round_sizes(problem)),
        simulation_(problem.costs, problem.devices, problem.micro_batches_per_call, options) {}

  /// Rounds for \p partition alone.
  [[nodiscard]] RoundPartition best_rounds(Partition const& partition) {
    for (auto const round : rounds_) {
      consider(partition, round);
    }
    return finish();
  }

  /// The best of all that are tried, \p start among them.
  [[nodiscard]] RoundPartition run(Partition const& start) {
    for (auto const round : rounds_) {
      consider(start, round);
    }
    try_even_cuts();
    std::ranges::stable_sort(found_, {}, &Found::score);
    found_.resize(std::min(found_.size(), climbs));
    for (std::size_t i = 0; i < found_.size(); ++i) {
      climb(found_[i], simulation_.tasks() + climb_tasks / found_.size());
    }
    return finish();
  }

 private:
  /// Limits of the effort, in simulated tasks of a few nanoseconds each.
  static constexpr std::size_t even_tasks = 40'000'000;
  static constexpr std::size_t climb_tasks = 50'000'000;
  static constexpr std::size_t climbs = 24;     ///< From how many partitions.
  static constexpr double unevenness = 1.6;     ///< Of mean forward and backward stages.
  static constexpr double longest_fused = 2.2;  ///< Times a mean backward stage.
  /// A stage more has to be worth so much of a call: its copies are not simulated. A single call is
  /// as short as can be; of equals the one with the fewest stages is taken.
  [[nodiscard]] double stage_share() const noexcept { return asynchronous_ ? 5e-6 : 1e-10; }

  struct Found {
    StageSizes sizes;
    std::size_t round = 0;
    double score = 0;
  };
  struct Shape {
    std::size_t fused = 0;
    std::size_t forward = 0;
    std::size_t backward = 0;  ///< Without the fused stage.
    double least_s = 0;        ///< What a call takes at least: devices are always busy.
    double estimate_s = 0;  ///< With fill and drain as if all stages were as slow as the slowest.
  };

  [[nodiscard]] std::size_t layers() const noexcept { return problem_.costs.size(); }

  [[nodiscard]] double score(Partition const& partition, std::size_t round) {
    auto const seconds = simulation_.simulate(partition, round).seconds;
    return seconds * (1 + stage_share() * static_cast<double>(partition.size()));
  }

  void consider(Partition const& partition, std::size_t round) {
    found_.push_back({StageSizes::of(partition), round, score(partition, round)});
    best_s_ = std::min(best_s_, found_.back().score);
  }

  /// In the steady state every device has a slot in every round, where the layers are enough.
  [[nodiscard]] bool has_too_few(std::size_t stages) const {
    return asynchronous_ && stages < std::min(problem_.devices, 2 * layers() - 1);
  }

  /// Cuts of all sensible numbers of stages, the most promising ones first.
  void try_even_cuts() {
    StageTicks const ticks(problem_.costs);
    EvenCuts const forward(problem_, ticks, StageDirection::forward);
    EvenCuts const backward(problem_, ticks, StageDirection::backward);
    for (auto const& shape : shapes()) {
      if (simulation_.tasks() > even_tasks) {
        break;
      }
      if (shape.least_s > best_s_) {
        continue;
      }
      LayerRange const last{layers() - shape.fused, shape.fused};
      auto const before = forward.cut(last.first, shape.forward);
      auto const after = backward.cut(last.first, shape.backward);
      if (!before || !after) {
        continue;
      }
      Partition candidate{*before, {last}};
      candidate.backward.insert(candidate.backward.end(), after->begin(), after->end());
      for (auto const round : rounds_) {
        consider(candidate, round);
      }
    }
  }

  /// Numbers of stages whose mean times are not too different, those first that should be fastest.
  [[nodiscard]] std::vector<Shape> shapes() const {
    std::span const costs(problem_.costs);
    auto const n = static_cast<double>(problem_.devices);
    auto const m = static_cast<double>(problem_.micro_batches_per_call);
    auto const next = [](std::size_t stages) { return stages + 1 + stages / 96; };
    std::vector<Shape> result;
    for (std::size_t fused = 1; fused <= layers(); ++fused) {
      auto const before = layers() - fused;
      if (problem_.fits && !problem_.fits(StageDirection::backward, {before, fused})) {
        continue;
      }
      auto const forward_s = stage_seconds(costs, StageDirection::forward, {0, before});
      auto const backward_s = stage_seconds(costs, StageDirection::backward, {0, before});
      auto const fused_s = stage_seconds(costs, StageDirection::backward, {before, fused});
      auto const least_s = m / n * (forward_s + backward_s + fused_s);
      auto const add = [&](std::size_t forward, std::size_t backward, double slowest_s) {
        if (!has_too_few(forward + 1 + backward)) {
          auto const fill_s = asynchronous_ ? 0 : (n - 1) * std::max(slowest_s, fused_s);
          result.push_back({fused, forward, backward, least_s, least_s + fill_s});
        }
      };
      if (before == 0) {
        add(0, 0, 0);
      }
      for (std::size_t b = 1; b <= before; b = next(b)) {
        auto const stage_s = backward_s / static_cast<double>(b);
        if (b > 1 && fused_s > longest_fused * stage_s) {
          break;
        }
        // So many forward stages take as long as the backward stages.
        auto const even = stage_s > 0 ? forward_s / stage_s : 1;
        auto const limit = [&](double stages) {
          return static_cast<std::size_t>(std::clamp(stages, 1.0, static_cast<double>(before)));
        };
        for (auto f = limit(std::ceil(even / unevenness)); f <= limit(even * unevenness);
             f = next(f)) {
          add(f, b, std::max(stage_s, forward_s / static_cast<double>(f)));
        }
      }
    }
    std::ranges::stable_sort(result, {}, &Shape::estimate_s);
    return result;
  }

  void climb(Found& start, std::size_t most_tasks) {
    using enum StageMoves::Verdict;
    StageMoves moves(start.sizes, [&](StageSizes const& sizes) {
      if (simulation_.tasks() > most_tasks) {
        return stop;
      }
      auto const partition = sizes.partition(layers());
      if (has_too_few(partition.size()) || !fits(problem_, partition)) {
        return no_better;
      }
      auto const found = score(partition, start.round);
      if (found >= start.score * (1 - 1e-9)) {
        return no_better;
      }
      start.score = found;
      return better;
    });
    start.sizes = moves.run();
  }

  [[nodiscard]] RoundPartition finish() {
    auto const& best = *std::ranges::min_element(found_, {}, &Found::score);
    auto partition = best.sizes.partition(layers());
    auto const call = simulation_.simulate(partition, best.round);
    return {std::move(partition), best.round, call};
  }

  PartitionProblem const& problem_;
  bool asynchronous_;
  std::vector<std::size_t> rounds_;
  SlotSimulation simulation_;
  std::vector<Found> found_;
  double best_s_ = std::numeric_limits<double>::infinity();
};

}  // namespace detail

/// \brief Tries cuts of every sensible number of stages, each as even as can be, improves the best
/// of them by small moves, and takes the partition and the rounds with which \ref SlotSimulation
/// says that calls are fastest.
///
/// \ref Partitioner minimizes a bound in which every stage takes as long as the slowest. This one
/// sees what a larger fused stage saves (its layers' forward is not run twice), what unequal stages
/// cost or do not, and what short stages at either end save of fill and drain. It is a local search
/// and exact in nothing; with no result slower than that of \ref Partitioner, but for the little
/// that a stage more has to be worth in the steady state: 0.0005 % of a call. Its effort is bounded
/// by a number of simulated tasks, about half a second.
class SimulatedPartitioner {
 public:
  explicit SimulatedPartitioner(SlotSimulationOptions options = {}) : options_(options) {}

  /// The partition and the best of \ref round_sizes.
  /// \throws Error as \ref Partitioner::partition; (invalid_argument) when the rounds that are to
  /// choose from do not divide the micro-batches.
  [[nodiscard]] RoundPartition search(PartitionProblem const& problem) const {
    auto const start = Partitioner{}.partition(problem);  // it refuses what makes no sense
    return detail::SimulatedSearch(problem, options_).run(start);
  }

  /// \throws Error as \ref search.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    return search(problem).partition;
  }

 private:
  SlotSimulationOptions options_;
};

static_assert(PartitionPolicy<SimulatedPartitioner>);

}  // namespace roundpipe
