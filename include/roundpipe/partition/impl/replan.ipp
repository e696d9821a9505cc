// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_by.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/replan.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>

#include <optional>

namespace roundpipe {

ROUNDPIPE_INLINE std::optional<RoundPartition> replan(PartitionProblem const& problem,
                                                      Partition const& now,
                                                      ReplanOptions const& options) {
  require(covers(now, problem.costs.size()),
          Errc::invalid_argument,
          "a partition is to be exchanged that is none of this model's layers");
  require(options.threshold >= 0, Errc::invalid_argument, "a threshold is not negative");
  auto found = ChosenPartitioner(options.by, options.simulation).search(problem);
  if (found.partition == now) {
    return std::nullopt;
  }
  if (fits(problem, now)) {
    auto const by_bound = options.by == PartitionBy::bound;
    auto const now_s =
        by_bound
            ? objective(problem, now)
            : detail::SimulatedSearch(problem, options.simulation).best_rounds(now).call.seconds;
    auto const then_s = by_bound ? objective(problem, found.partition) : found.call.seconds;
    if (!(then_s < now_s * (1 - options.threshold))) {
      return std::nullopt;
    }
  }
  return found;
}

}  // namespace roundpipe
