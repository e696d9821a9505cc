// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Graphs of schedules over layers that have nothing but costs, for simulations in tests.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/resident_graph.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/plan/streamed_graph.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace roundpipe::test {

/// A model of equal layers, and the graphs of its calls.
class ScheduledModel {
 public:
  explicit ScheduledModel(std::size_t layers, int staleness = 0)
      : bytes_(layers, LayerBytes{.boundary_bytes = 512}),
        description_(describe_bytes(bytes_)),
        blocks_(form_blocks(description_)),
        protocol_(staleness) {}

  [[nodiscard]] ParameterBlocks const& blocks() const noexcept { return blocks_; }

  /// On devices that keep their weights.
  template <Schedule S>
  [[nodiscard]] ActionGraph bound(S const& schedule,
                                  Partition const& partition,
                                  ScheduleShape const& shape,
                                  bool recompute_waits = false) const {
    std::vector<Bytes> boundaries;
    for (auto const& layer : bytes_) {
      boundaries.push_back(layer.boundary_bytes);
    }
    auto const tasks = schedule.tasks(shape);
    return with_role(build_resident_graph({blocks_,
                                           partition,
                                           boundaries,
                                           shape,
                                           tasks,
                                           schedule.advance(shape),
                                           recompute_waits,
                                           before()}));
  }

  /// As `Pipeline` runs it.
  template <Schedule S>
  [[nodiscard]] ActionGraph streamed(S const& schedule,
                                     Partition const& partition,
                                     ScheduleShape const& shape) const {
    Buffering const buffering{2, 2, 2};
    auto const plan = lay_out_stages(description_, blocks_, partition, buffering);
    auto const tasks = schedule.tasks(shape);
    PriorityTransferEngine const transfers;
    return with_role(
        build_streamed_graph({blocks_,
                              plan.train,
                              shape,
                              tasks,
                              schedule.advance(shape),
                              HostRings(plan.train, shape.micro_batches_per_round, shape.rounds),
                              buffering,
                              [&](std::span<Bytes const> tensors, std::size_t windows) {
                                return transfers.chunks(tensors, windows);
                              },
                              before()}));
  }

  [[nodiscard]] ActionGraph step() const { return build_step_graph(blocks_, protocol_, {}); }

 private:
  [[nodiscard]] std::function<std::vector<BlockEvent>(BlockEvent)> before() const {
    return [this](BlockEvent event) { return protocol_.before(event, blocks_.blocks.size()); };
  }
  [[nodiscard]] ActionGraph with_role(ActionGraph graph) const {
    set_role(graph, GraphRole::call, protocol_);
    return graph;
  }

  std::vector<LayerBytes> bytes_;
  ModelDescription description_;
  ParameterBlocks blocks_;
  LayerEventProtocol protocol_;
};

/// The shape of \p partition on \p devices.
inline ScheduleShape shape_of(Partition const& partition,
                              std::size_t devices,
                              std::size_t micro_batches_per_round,
                              std::size_t rounds = 1) {
  std::size_t covered = 0;
  for (auto const& range : partition.forward) {
    covered += range.count;
  }
  std::size_t layers = 0;
  for (auto const& range : partition.backward) {
    layers += range.count;
  }
  return {.forward_stages = partition.forward.size(),
          .backward_stages = partition.backward.size(),
          .devices = devices,
          .micro_batches_per_round = micro_batches_per_round,
          .rounds = rounds,
          .fused = covered < layers};
}

}  // namespace roundpipe::test
