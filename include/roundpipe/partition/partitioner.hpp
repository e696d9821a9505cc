// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a model into the forward and backward stages that make a call shortest.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/partition_search.hpp>

#include <string>

namespace roundpipe {

/// \brief Finds the least (M S + N (N - 1)) t_max over all forward and backward partitions
/// (RoundPipe, arXiv:2604.27085), exactly.
///
/// For a number of stages, bisection finds the shortest t_max among the sums of consecutive layers'
/// times; for a t_max, a search finds the fewest stages that fit. The partitioner skips whatever
/// cannot beat the best so far, which is nearly everything. `fits` need not be monotone. The
/// partitioner asks it at most once about each stage, and only about stages that are short enough
/// for a t_max that it searches.
///
/// Among equals the smallest t_max wins, then the largest fused stage, then the most even stages.
/// The objective takes all stages for as slow as the slowest; but fill, drain and imbalance shrink
/// with their variance.
class Partitioner {
 public:
  /// \throws Error (invalid_argument) for no layers, devices or micro-batches or a cost that is
  /// negative or not finite; (over_budget) when no partition fits.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const;
  /// As \ref PartitionPolicy says.
  [[nodiscard]] static constexpr bool yields_to_forecast() noexcept { return true; }

 private:
  static std::string reason(detail::PartitionSearch& search);
};

static_assert(PartitionPolicy<Partitioner>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/partitioner.ipp>
#endif
