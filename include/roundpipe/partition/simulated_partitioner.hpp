// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a model into the stages, and a call into the rounds, that are fastest when they are
/// simulated.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/round_partition.hpp>
#include <roundpipe/partition/slot_simulation.hpp>
#include <roundpipe/partition/stage_moves.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
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

  /// The best of all that are tried, \p start among them.
  [[nodiscard]] RoundPartition run(Partition const& start);

 private:
  /// Limits of the effort, in simulated tasks of a few nanoseconds each.
  static constexpr std::size_t even_tasks = 40'000'000;
  static constexpr std::size_t climb_tasks = 50'000'000;
  static constexpr std::size_t climbs = 24;     ///< From how many partitions.
  static constexpr double unevenness = 1.6;     ///< Of mean forward and backward stages.
  static constexpr double longest_fused = 2.2;  ///< Times a mean backward stage.
  /// One more stage must save this share of a call: the simulation leaves out the copies that it
  /// costs. For a single call the share only decides between equals: the fewest stages win.
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

  void consider(Partition const& partition, std::size_t round);

  /// In the steady state every device has a slot in every round, if there are enough layers.
  [[nodiscard]] bool has_too_few(std::size_t stages) const {
    return asynchronous_ && stages < std::min(problem_.devices, 2 * layers() - 1);
  }

  /// Cuts of all sensible numbers of stages, the most promising ones first.
  void try_even_cuts();

  /// Numbers of stages whose mean times do not differ too much, the most promising ones first.
  [[nodiscard]] std::vector<Shape> shapes() const;

  void climb(Found& start, std::size_t most_tasks);

  [[nodiscard]] RoundPartition finish();

  PartitionProblem const& problem_;
  bool asynchronous_;
  std::vector<std::size_t> rounds_;
  SlotSimulation simulation_;
  std::vector<Found> found_;
  double best_s_ = std::numeric_limits<double>::infinity();
};

}  // namespace detail

/// \brief Tries cuts of every sensible number of stages, each as even as can be, improves the best
/// of them by small moves, and takes the partition and the rounds whose calls are fastest according
/// to \ref SlotSimulation.
///
/// \ref Partitioner minimizes a bound in which every stage takes as long as the slowest. This
/// policy sees more: what a larger fused stage saves (its layers are not recomputed), what unequal
/// stages really cost, and how short stages at either end shorten fill and drain. It searches
/// locally and promises no optimum. Its result is never slower than that of \ref Partitioner, but
/// for the 0.0005 % of a call that one more stage must save in the steady state. A number of
/// simulated tasks bounds its effort: about half a second.
class SimulatedPartitioner {
 public:
  explicit SimulatedPartitioner(SlotSimulationOptions options = {}) : options_(options) {}

  /// The partition and the best of \ref round_sizes.
  /// \throws Error as \ref Partitioner::partition; (invalid_argument) when a size of rounds to
  /// choose from does not divide the micro-batches.
  [[nodiscard]] RoundPartition search(PartitionProblem const& problem) const {
    auto const start = Partitioner{}.partition(problem);  // it refuses what makes no sense
    return detail::SimulatedSearch(problem, options_).run(start);
  }

  /// \throws Error as \ref search.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    return search(problem).partition;
  }
  /// As \ref PartitionPolicy says.
  [[nodiscard]] static constexpr bool yields_to_forecast() noexcept { return true; }

 private:
  SlotSimulationOptions options_;
};

static_assert(PartitionPolicy<SimulatedPartitioner>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/simulated_partitioner.ipp>
#endif
