// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether newly measured costs are worth another partition.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_by.hpp>

#include <optional>
#include <utility>

namespace roundpipe {

/// When a partition is exchanged for another.
struct ReplanOptions {
  PartitionBy by = PartitionBy::bound;
  SlotSimulationOptions simulation = {};  ///< What is simulated.
  /// The share of the present time that must be saved: measured costs differ by some percent from
  /// one time to the next, and another partition costs new buffers, graphs and a warm-up.
  double threshold = 0.03;
};

/// A better partition than \p now for the newly measured costs of \p problem; nothing when none
/// saves more than the threshold, so that noise does not make plans flap. Both are judged by the
/// same measure, with the new costs; a partition that does not fit any more is always exchanged.
/// \throws Error (invalid_argument) when \p now is no partition of the problem's layers, or for a
/// negative threshold; as \ref SimulatedPartitioner::search.
[[nodiscard]] std::optional<RoundPartition> replan(PartitionProblem const& problem,
                                                   Partition const& now,
                                                   ReplanOptions const& options = {});

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/replan.ipp>
#endif
