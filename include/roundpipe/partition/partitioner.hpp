// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a model into the forward and backward stages that make a call shortest.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/partition_search.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace roundpipe {

/// \brief Finds the least (M S + N (N - 1)) t_max over all forward and backward partitions
/// (RoundPipe, arXiv:2604.27085), exactly.
///
/// For a number of stages, bisection finds the shortest t_max among the sums of consecutive layers'
/// times; for a t_max, a search finds the fewest stages that fit. What cannot be better than the
/// best so far is left out, which is nearly all. `fits` need not be monotone, is asked at most once
/// for each stage, and only for stages that are no longer than a t_max that is searched.
///
/// Among equals the smallest t_max wins, then the largest fused stage, then the most even stages:
/// the objective takes them all for as slow as the slowest, but fill, drain and imbalance shrink
/// with their variance.
class Partitioner {
 public:
  /// \throws Error (invalid_argument) for no layers, devices or micro-batches or a cost that is
  /// negative or not finite; (over_budget) when no partition fits.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    require(!problem.costs.empty(), Errc::invalid_argument, "a model without layers has no stages");
    require(problem.devices > 0, Errc::invalid_argument, "a partition needs at least one device");
    require(problem.micro_batches_per_call > 0,
            Errc::invalid_argument,
            "a partition needs at least one micro-batch");
    for (std::size_t layer = 0; layer < problem.costs.size(); ++layer) {
      auto const& cost = problem.costs[layer];
      for (auto const s : {cost.forward_s, cost.recomputing_s(), cost.backward_s}) {
        if (!(s >= 0) || !std::isfinite(s)) {
          throw Error(Errc::invalid_argument,
                      "the cost of layer " + std::to_string(layer) + " is " + std::to_string(s) +
                          " s; a cost is finite and not negative");
        }
      }
    }
    detail::PartitionSearch search(problem);
    if (auto found = search.run()) {
      return *std::move(found);
    }
    throw Error(Errc::over_budget, reason(search));
  }

 private:
  static std::string reason(detail::PartitionSearch& search) {
    std::string text = "no partition fits";
    for (auto const direction : {StageDirection::backward, StageDirection::forward}) {
      if (auto const layer = search.misfit(direction)) {
        text += ": layer " + std::to_string(*layer) + " alone does not fit into a device as a " +
                (direction == StageDirection::forward ? "forward" : "backward") + " stage";
        break;
      }
    }
    return text + "; a larger device budget or smaller micro-batches would help";
  }
};

static_assert(PartitionPolicy<Partitioner>);

}  // namespace roundpipe
