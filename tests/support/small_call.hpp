// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A small call; tests build parts of a graph from it.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/toy_model.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// Four toy layers as two forward stages (0 and 1), a fused one (2) and two backward ones (3 and
/// 4), dealt round robin. Do not move it while an input is in use.
class SmallCall {
 public:
  static constexpr std::size_t stages = 5;

  SmallCall(std::size_t devices,
            std::size_t micro_batches_per_round,
            std::size_t rounds = 1,
            Buffering buffering = {},
            ToyModelOptions options = {.dense = 2},
            std::optional<std::vector<std::vector<std::size_t>>> const& levels = std::nullopt)
      : model_(describe(toy_model(options), {2, 3})),
        blocks_(form_blocks(model_, rounds > 1)),
        buffering_(buffering),
        plan_(lay_out_stages(
            model_,
            blocks_,
            {{{0, 2}, {2, 1}}, {{3, 1}, {1, 2}, {0, 1}}},
            buffering,
            levels ? keep_levels(model_, *levels, micro_batches_per_round) : WorkingSet{})),
        shape_{.forward_stages = 2,
               .backward_stages = 3,
               .devices = devices,
               .micro_batches_per_round = micro_batches_per_round,
               .rounds = rounds},
        rings_(plan_.train, micro_batches_per_round, rounds),
        tasks_(RoundRobinSchedule{}.tasks(shape_)) {}
  SmallCall(SmallCall const&) = delete;
  SmallCall& operator=(SmallCall const&) = delete;

  [[nodiscard]] ParameterBlocks const& blocks() const noexcept { return blocks_; }
  [[nodiscard]] StageLayout const& stage(std::size_t index) const { return plan_.train[index]; }

  [[nodiscard]] StreamedGraphInput input() const {
    return {blocks_,
            plan_.train,
            shape_,
            tasks_,
            0,
            rings_,
            buffering_,
            [](std::span<Bytes const> tensors, std::size_t windows) {
              return PriorityTransferEngine{}.chunks(tensors, windows);
            },
            [this](BlockEvent event) { return protocol_.before(event, blocks_.blocks.size()); }};
  }

  /// The host bytes of all parameters of stage \p index (or only of the trained ones).
  [[nodiscard]] Bytes parameter_bytes(std::size_t index, bool trained_only = false) const {
    Bytes bytes = 0;
    for (auto const& place : stage(index).uses) {
      for (auto const& spec : blocks_.block_of(place.use).master) {
        bytes += place.trains || !trained_only ? spec.bytes() : 0;
      }
    }
    return bytes;
  }

 private:
  ModelDescription model_;
  ParameterBlocks blocks_;
  Buffering buffering_;
  StagePlan plan_;
  ScheduleShape shape_;
  HostRings rings_;
  DeviceTasks tasks_;
  LayerEventProtocol protocol_{0};
};

/// The actions of \p kind that \p call has so far; consumes \p call.
inline std::vector<Action> actions_of(detail::CallContext&& call, ActionKind kind) {
  std::vector<Action> actions;
  for (auto& action : std::move(call.graph).finish(0).actions) {
    if (action.kind == kind) {
      actions.push_back(action);
    }
  }
  return actions;
}

}  // namespace roundpipe::test
