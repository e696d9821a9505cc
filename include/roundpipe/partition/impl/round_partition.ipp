// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/round_partition.hpp>
#include <roundpipe/partition/slot_simulation.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<std::size_t> round_sizes(PartitionProblem const& problem) {
  auto sizes = problem.micro_batches_per_round;
  for (auto const size : sizes) {
    require(size > 0 && problem.micro_batches_per_call % size == 0,
            Errc::invalid_argument,
            "the micro-batches of a call do not fill its rounds");
  }
  if (sizes.empty()) {
    for (auto size = problem.devices; size < problem.micro_batches_per_call; ++size) {
      if (problem.micro_batches_per_call % size == 0) {
        sizes.push_back(size);
      }
    }
    sizes.push_back(problem.micro_batches_per_call);
  }
  return sizes;
}

ROUNDPIPE_INLINE RoundPartition best_rounds(PartitionProblem const& problem,
                                            Partition partition,
                                            SlotSimulationOptions const& options) {
  SlotSimulation simulation(
      problem.costs, problem.devices, problem.micro_batches_per_call, options);
  RoundPartition best;
  for (auto const round : round_sizes(problem)) {
    auto const call = simulation.simulate(partition, round);
    if (best.micro_batches_per_round == 0 || call.seconds < best.call.seconds) {
      best.micro_batches_per_round = round;
      best.call = call;
    }
  }
  best.partition = std::move(partition);
  return best;
}

}  // namespace roundpipe
