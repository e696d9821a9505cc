// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Policies that a user might write in place of the library's.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe::test {

using LoopedBfs = LoopedBfsSchedule;

/// One copy a slot; activations go up only when they are needed.
class CopyAtOnce {
 public:
  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t windows) const {
    Chunk chunk;
    chunk.window = windows - 1;
    chunk.gated = false;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      chunk.pieces.push_back({i, 0, tensors[i]});
    }
    return {chunk};
  }
  [[nodiscard]] std::size_t activations_in_flight() const { return 1; }
};

/// Every layer is a stage of its own.
class OneLayerStages {
 public:
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    Partition partition;
    for (std::size_t i = 0; i < problem.costs.size(); ++i) {
      if (i + 1 < problem.costs.size()) {
        partition.forward.push_back({i, 1});
      }
      partition.backward.insert(partition.backward.begin(), {i, 1});
    }
    return partition;
  }
};

/// One forward stage, and backward stages of a layer each. On two devices the forward stage and
/// every other backward stage share one.
class OneForwardStage {
 public:
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    auto partition = OneLayerStages{}.partition(problem);
    partition.forward = {{0, problem.costs.size() - 1}};
    return partition;
  }
};

/// All layers are one stage.
class OneStage {
 public:
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    return {{}, {{0, problem.costs.size()}}};
  }
};

static_assert(PartitionPolicy<OneLayerStages>);
static_assert(PartitionPolicy<OneForwardStage>);
static_assert(PartitionPolicy<OneStage>);
static_assert(TransferPolicy<CopyAtOnce>);

}  // namespace roundpipe::test
