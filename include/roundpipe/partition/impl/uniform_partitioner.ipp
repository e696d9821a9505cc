// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/uniform_partitioner.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace roundpipe {

ROUNDPIPE_INLINE Partition UniformPartitioner::partition(PartitionProblem const& problem) const {
  auto const layers = problem.costs.size();
  std::optional<Partition> best;
  for (auto size = layers; size > 0; --size) {
    auto const candidate = cut(layers, size);
    if (fits(problem, candidate) &&
        (!best || objective(problem, candidate) < objective(problem, *best))) {
      best = candidate;
    }
  }
  if (!best) {
    throw Error(Errc::over_budget, "no stages of equally many layers fit the budget");
  }
  return *best;
}

ROUNDPIPE_INLINE Partition UniformPartitioner::cut(std::size_t layers, std::size_t size) {
  Partition partition;
  for (auto end = layers; end > 0; end -= std::min(size, end)) {
    auto const count = std::min(size, end);
    partition.backward.push_back({end - count, count});
  }
  auto const before = partition.backward.front().first;
  for (std::size_t first = 0; first < before; first += size) {
    partition.forward.push_back({first, std::min(size, before - first)});
  }
  return partition;
}

}  // namespace roundpipe
