// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Stages together with the rounds in which a call runs through them.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/slot_simulation.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// The sizes of rounds that \p problem leaves open, see
/// \ref PartitionProblem::micro_batches_per_round.
/// \throws Error (invalid_argument) when one does not divide the micro-batches.
[[nodiscard]] inline std::vector<std::size_t> round_sizes(PartitionProblem const& problem) {
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

/// Stages and rounds, and what they take.
struct RoundPartition {
  Partition partition;
  std::size_t micro_batches_per_round = 0;  ///< M_R
  SimulatedCall call;                       ///< Simulated.
};

}  // namespace roundpipe
