// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether stages are a partition of a model, and fit.

#include <roundpipe/concepts/partition_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace roundpipe {

/// Whether \p partition is one of \p layers layers, as \ref Partition describes it: no stage is
/// empty, all lie in execution order, and each layer runs forward and backward once.
[[nodiscard]] inline bool covers(Partition const& partition, std::size_t layers) {
  std::size_t next = 0;
  for (auto const& range : partition.forward) {
    if (range.first != next || range.count == 0 || range.count > layers - next) {
      return false;
    }
    next = range.end();
  }
  if (partition.backward.empty() || partition.backward.front().first != next) {
    return false;
  }
  auto end = layers;
  for (auto const& range : partition.backward) {
    if (range.count == 0 || range.count > end || range.first != end - range.count) {
      return false;
    }
    end = range.first;
  }
  return end == 0;
}

/// Whether each stage of \p partition fits, as \p problem says.
[[nodiscard]] inline bool fits(PartitionProblem const& problem, Partition const& partition) {
  auto const all = [&](StageDirection direction, std::vector<LayerRange> const& ranges) {
    return std::ranges::all_of(
        ranges, [&](LayerRange const& range) { return problem.fits(direction, range); });
  };
  return !problem.fits || (all(StageDirection::forward, partition.forward) &&
                           all(StageDirection::backward, partition.backward));
}

}  // namespace roundpipe
