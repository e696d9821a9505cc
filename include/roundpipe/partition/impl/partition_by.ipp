// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/partition_by.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/partition/slot_simulation.hpp>

namespace roundpipe {

ROUNDPIPE_INLINE RoundPartition ChosenPartitioner::search(PartitionProblem const& problem) const {
  if (by_ == PartitionBy::simulation) {
    return SimulatedPartitioner(options_).search(problem);
  }
  auto const partition = Partitioner{}.partition(problem);
  return detail::SimulatedSearch(problem, options_).best_rounds(partition);
}

}  // namespace roundpipe
