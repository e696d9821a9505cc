// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_search.hpp>
#include <roundpipe/partition/partitioner.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE Partition Partitioner::partition(PartitionProblem const& problem) const {
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

ROUNDPIPE_INLINE std::string Partitioner::reason(detail::PartitionSearch& search) {
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

}  // namespace roundpipe
