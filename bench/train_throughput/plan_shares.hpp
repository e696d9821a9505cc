// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief How much a plan recomputes, and how much it keeps on the host instead.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/working_set.hpp>

#include <cstddef>

namespace train_throughput {

struct PlanShares {
  double recomputed_flops = 0;  ///< Recomputations, of all FLOPs of an iteration.
  /// What the host keeps, of the bytes that layers before the fused stage save.
  double kept_bytes = 0;
};

/// FLOPs are those that layers count (`FlopCount`).
[[nodiscard]] PlanShares shares_of(roundpipe::ModelDescription const& model,
                                   roundpipe::Partition const& partition,
                                   roundpipe::WorkingSet const& working_set,
                                   std::size_t micro_batches_per_round,
                                   std::size_t rounds);

}  // namespace train_throughput
