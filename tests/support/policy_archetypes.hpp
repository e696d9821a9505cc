// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The smallest models of the policy concepts: exactly the members that each concept
/// requires.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/id.hpp>
#include <support/copy_only.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// A number in the least convenient form: it converts to \p T, and does nothing else.
template <class T>
class Converts {
 public:
  constexpr explicit Converts(T value) : value_(value) {}
  constexpr operator T() const { return value_; }  // the purpose of the type

 private:
  T value_;
};

/// Runs every slot on device 0, in order.
class ScheduleArchetype : CopyOnly {
 public:
  using CopyOnly::CopyOnly;

  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    DeviceTasks result(shape.devices);
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      for (std::size_t stage = 0; stage < shape.stages(); ++stage) {
        for (std::size_t i = 0; i < shape.micro_batches_per_round; ++i) {
          auto const add = [&](TaskKind kind) {
            result[0].push_back({StageId(stage), kind, RoundId(round), MicroBatchId(i)});
          };
          if (stage < shape.forward_stages) {
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
    return result;
  }
  [[nodiscard]] Converts<std::size_t> advance(ScheduleShape const&) const {
    return Converts<std::size_t>(0);
  }
};

/// Copies whole tensors in the first window, and waits for nothing.
class TransferPolicyArchetype : CopyOnly {
 public:
  using CopyOnly::CopyOnly;

  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors, std::size_t) const {
    Chunk chunk;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      if (tensors[tensor] > 0) {
        chunk.pieces.push_back({tensor, 0, tensors[tensor]});
      }
    }
    chunk.gated = false;
    return chunk.pieces.empty() ? std::vector<Chunk>{} : std::vector{std::move(chunk)};
  }
  [[nodiscard]] Converts<std::size_t> activations_in_flight() const {
    return Converts<std::size_t>(1);
  }
};

/// Synchronous, and over-careful: every action on a block waits for all earlier actions on it.
class EventProtocolArchetype : CopyOnly {
 public:
  using CopyOnly::CopyOnly;

  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t) const {
    std::vector<BlockEvent> result;
    for (auto const kind : {BlockEventKind::upload,
                            BlockEventKind::gradient_write,
                            BlockEventKind::optimizer_step,
                            BlockEventKind::parameter_copy}) {
      if (kind != action.kind) {
        result.push_back({action.block, kind});
      }
    }
    return result;
  }
  [[nodiscard]] Converts<int> staleness() const { return Converts<int>(0); }
  [[nodiscard]] Converts<std::size_t> master_copies() const { return Converts<std::size_t>(1); }
  [[nodiscard]] Converts<std::size_t> gradient_buffers() const { return Converts<std::size_t>(1); }
};

/// One stage for each layer and direction, whether it fits or not.
class PartitionPolicyArchetype : CopyOnly {
 public:
  using CopyOnly::CopyOnly;

  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    Partition result;
    for (std::size_t layer = 0; layer < problem.costs.size(); ++layer) {
      if (layer + 1 < problem.costs.size()) {
        result.forward.push_back({layer, 1});
      }
      result.backward.insert(result.backward.begin(), {layer, 1});
    }
    return result;
  }
};

/// Subtracts the gradient.
class OptimizerArchetype : CopyOnly {
 public:
  using CopyOnly::CopyOnly;

  [[nodiscard]] Converts<std::size_t> state_arrays() const { return Converts<std::size_t>(0); }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const>) const {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] -= context.gradient_factor * gradients[i];
    }
  }
};

}  // namespace roundpipe::test
