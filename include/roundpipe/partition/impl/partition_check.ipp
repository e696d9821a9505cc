// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_check.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE void check(std::span<LayerCost const> costs) {
  require(!costs.empty(), Errc::invalid_argument, "a model without layers has no stages");
  for (std::size_t layer = 0; layer < costs.size(); ++layer) {
    auto const& cost = costs[layer];
    std::vector<double> times{cost.forward_s, cost.recomputing_s(), cost.backward_s};
    times.insert(times.end(), cost.replay_s.begin(), cost.replay_s.end());
    for (auto const s : times) {
      if (!(s >= 0) || !std::isfinite(s)) {
        throw Error(Errc::invalid_argument,
                    "the cost of layer " + std::to_string(layer) + " is " + std::to_string(s) +
                        " s; a cost is finite and not negative");
      }
    }
  }
}

ROUNDPIPE_INLINE bool covers(Partition const& partition, std::size_t layers) {
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

ROUNDPIPE_INLINE bool fits(PartitionProblem const& problem, Partition const& partition) {
  auto const all = [&](StageDirection direction, std::vector<LayerRange> const& ranges) {
    return std::all_of(ranges.begin(), ranges.end(), [&](LayerRange const& range) {
      return problem.fits(direction, range);
    });
  };
  return !problem.fits || (all(StageDirection::forward, partition.forward) &&
                           all(StageDirection::backward, partition.backward));
}

}  // namespace roundpipe
