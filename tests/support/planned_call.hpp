// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A planned training call of a small model with all its memory, not run.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/runtime/actions/device_places.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/system/aligned_memory.hpp>
#include <support/toy_model.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe::test {

/// A call of two micro-batches of a toy model in bf16 on two devices, at its capacity. Save levels
/// are by layer and micro-batch; without any, the host keeps checkpoints between stages. With
/// peers, boundaries go from device to device.
struct PlannedCall {
  using Model = decltype(toy_model({}));

  explicit PlannedCall(std::vector<std::vector<std::size_t>> const& save_levels = {},
                       bool peers = false)
      : backend({.devices = 2, .reaches_peers = peers}),
        plan(make_pipeline_plan(
            model, backend, planner, shapes.capacity(), options(save_levels, peers), {})) {
    take_staging(call, 2, shapes.capacity().batch.tensors.bytes(), 0, arena.taker());
    call.stages = plan.stages.train;
    call.micro_batches_per_round = 2;
    call.shapes = {&shapes.capacity(), &shapes.capacity()};
    call.gradient_scale = 0.25;
    call.seed = 7;
    call.number = 3;
    run.begin(0, {.devices = 2});
    for (auto const& [ring, use] : program.graph().rings) {
      run.set_ring_base(ring, 0);
    }
  }

  [[nodiscard]] static PipelineOptions options(
      std::vector<std::vector<std::size_t>> const& save_levels = {}, bool peers = false) {
    PipelineOptions options;
    options.peer_boundaries = peers;
    if (!save_levels.empty()) {
      options.save_levels = save_levels;
    }
    options.capacity = {2, 3};
    options.micro_batches_per_round = 2;
    options.devices = 2;
    options.device_memory = 1_MiB;
    options.host_memory = 64_MiB;
    return options;
  }

  /// Calls \p f with every action of a device.
  template <class F>
  void for_each_device_action(F&& f) const {
    for (auto const& action : program.graph().actions) {
      if (action.lane.device.valid()) {
        f(DeviceAction{run, action, run.physical(action.lane.device)});
      }
    }
  }
  /// Whether \p bytes lie in the arena of \p device.
  [[nodiscard]] bool in_arena(DeviceId device, DeviceBytes bytes) const {
    auto const whole = memory[device.index()].device_bytes();
    return bytes.device_pointer() >= whole.device_pointer() &&
           bytes.device_pointer() + bytes.size() <= whole.device_pointer() + whole.size();
  }

  HostBackend backend;
  Model model = toy_model(
      {.types = {.parameter = DType::bf16, .boundary = DType::bf16}, .dense = 3, .tied = true});
  ShapeCache<Model> shapes{model, {2, 3}};
  Planner<RoundRobinSchedule, PriorityTransferEngine, LayerEventProtocol, Partitioner> planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  PipelinePlan plan;
  HostArena<HostBackend> arena{backend};
  ParameterMemory parameters{plan.blocks, {.master_copies = 2}, plan.host.landings, arena.taker()};
  BoundaryStore boundaries{plan.host.rings, arena.taker()};
  std::vector<AlignedMemory> memory = arenas();
  DevicePlaces places{plan.stages.memory, {memory[0].device_bytes(), memory[1].device_bytes()}};
  CallData call;
  GraphProgram program{plan.graph};
  RunState run{program, call};

 private:
  [[nodiscard]] std::vector<AlignedMemory> arenas() const {
    std::vector<AlignedMemory> result;
    result.emplace_back(plan.stages.memory.bytes);
    result.emplace_back(plan.stages.memory.bytes);
    return result;
  }
};

}  // namespace roundpipe::test
