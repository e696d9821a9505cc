// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partition_search.hpp>
#include <roundpipe/partition/partitioner.hpp>

#include <string>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE Partition Partitioner::partition(PartitionProblem const& problem) const {
  check(problem.costs);
  require(problem.devices > 0, Errc::invalid_argument, "a partition needs at least one device");
  require(problem.micro_batches_per_call > 0,
          Errc::invalid_argument,
          "a partition needs at least one micro-batch");
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
