// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The choice of what a partition is judged by: a bound, or a simulation.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/partition/slot_simulation.hpp>

#include <cstdint>

namespace roundpipe {

/// What a partition is judged by.
enum class PartitionBy : std::uint8_t {
  bound,      ///< (M S + N (N - 1)) t_max, see \ref Partitioner.
  simulation  ///< What \ref SlotSimulation says, see \ref SimulatedPartitioner.
};

[[nodiscard]] constexpr char const* name_of(PartitionBy by) noexcept {
  return by == PartitionBy::bound ? "bound" : "simulation";
}

/// \ref Partitioner or \ref SimulatedPartitioner, whichever was chosen when the program ran.
class ChosenPartitioner {
 public:
  /// \p options: what is simulated. By the bound, that chooses the rounds alone.
  explicit ChosenPartitioner(PartitionBy by = PartitionBy::bound,
                             SlotSimulationOptions options = {})
      : by_(by), options_(options) {}

  /// The partition, and the best of \ref round_sizes with it.
  /// \throws Error as \ref SimulatedPartitioner::search.
  [[nodiscard]] RoundPartition search(PartitionProblem const& problem) const;

  /// \throws Error as \ref search.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    return by_ == PartitionBy::bound ? Partitioner{}.partition(problem) : search(problem).partition;
  }

 private:
  PartitionBy by_;
  SlotSimulationOptions options_;
};

static_assert(PartitionPolicy<ChosenPartitioner>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/partition_by.ipp>
#endif
