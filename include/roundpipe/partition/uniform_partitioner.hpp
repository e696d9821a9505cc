// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stages of equally many layers: what balanced partitions are compared with.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// \brief Cuts forward and backward into stages of equally many layers; heads and embeddings count
/// like any other layer, and the last stage of either direction has what is left. Of the numbers
/// that fit it takes the one with the smallest \ref objective.
class UniformPartitioner {
 public:
  /// \throws Error (over_budget) when no such partition fits.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const;

 private:
  static Partition cut(std::size_t layers, std::size_t size);
};

static_assert(PartitionPolicy<UniformPartitioner>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/uniform_partitioner.ipp>
#endif
