// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stages together with the rounds in which a call runs through them.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/slot_simulation.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// The sizes of rounds that \p problem lets a policy choose from, see
/// \ref PartitionProblem::micro_batches_per_round.
/// \throws Error (invalid_argument) when one does not divide the micro-batches.
[[nodiscard]] std::vector<std::size_t> round_sizes(PartitionProblem const& problem);

/// Stages and rounds, and what they take.
struct RoundPartition {
  Partition partition;
  std::size_t micro_batches_per_round = 0;  ///< M_R
  SimulatedCall call;                       ///< Simulated.
};

/// \p partition, and the one of \ref round_sizes with which a simulated call is shortest; of
/// equals, the first.
/// \throws Error (invalid_argument) as \ref round_sizes and \ref SlotSimulation.
[[nodiscard]] RoundPartition best_rounds(PartitionProblem const& problem,
                                         Partition partition,
                                         SlotSimulationOptions const& options = {});

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/round_partition.ipp>
#endif
