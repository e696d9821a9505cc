// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Policies that a user might write instead of the library's.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe::test {

/// Looped breadth-first pipeline with weights bound to devices: stage i forward, and the backward
/// stage that holds the same place from the end, run on a fixed device, whatever the call.
class LoopedBfs {
 public:
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    DeviceTasks tasks(shape.devices);
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      for (std::size_t stage = 0; stage < shape.stages(); ++stage) {
        auto const backward = stage >= shape.forward_stages;
        auto const loop = backward ? shape.stages() - 1 - stage : stage;
        auto& list = tasks[loop % shape.devices];
        for (std::size_t m = 0; m < shape.micro_batches; ++m) {
          auto const add = [&](TaskKind kind) {
            list.push_back({StageId(stage), kind, RoundId(round), MicroBatchId(m)});
          };
          if (!backward) {
            add(TaskKind::forward);
          } else if (stage == shape.forward_stages) {
            add(TaskKind::fused);
          } else {
            add(TaskKind::recompute);
            add(TaskKind::backward);
          }
        }
      }
    }
    return tasks;
  }
  [[nodiscard]] std::size_t advance(ScheduleShape const& /*shape*/) const { return 0; }
};

/// One copy a slot, and activations only when they are needed.
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

/// Every layer a stage of its own.
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

static_assert(PartitionPolicy<OneLayerStages>);
static_assert(Schedule<LoopedBfs>);
static_assert(TransferPolicy<CopyAtOnce>);

}  // namespace roundpipe::test
