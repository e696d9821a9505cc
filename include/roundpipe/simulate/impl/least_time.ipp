// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/partition/slot_simulation.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/simulate/least_time.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE double least_iteration_seconds(std::span<StageLayout const> stages,
                                                ParameterBlocks const& blocks,
                                                CallOutline const& call,
                                                SimulationOptions const& machine) {
  auto const& shape = call.shape;
  double compute_s = 0;
  auto up = static_cast<double>(call.handed_on);  // bytes
  auto down = up;
  for (auto const& stage : stages) {
    for (auto const& place : stage.uses) {
      if (place.holds() && !place.stays) {
        auto const bytes = blocks.block_of(place.use).master.bytes();
        up += static_cast<double>(shape.rounds * bytes);
      }
    }
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      auto const& set = stage.working_set.of_round(round);
      for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
        for (auto const& pass : passes_over(stage.kind, stage.range, set, m)) {
          auto const& cost = machine.compute.layers[pass.layer];
          compute_s += seconds_of(pass, cost);
          auto const bytes = static_cast<double>(set.bytes(pass.layer, m));
          up += pass.kind == PassKind::backward && pass.reads.has(PassData::kept) ? bytes : 0;
          down += pass.writes.has(PassData::kept) ? bytes : 0;
        }
      }
    }
  }
  auto const at_rate = [](double bytes, double bytes_per_second) {
    return bytes_per_second > 0 ? bytes / bytes_per_second : 0;
  };
  auto const devices = static_cast<double>(shape.devices);
  auto const& link = machine.link;
  return std::max({compute_s / devices,
                   at_rate(up / devices, link.upload_bytes_per_second),
                   at_rate(down / devices, link.download_bytes_per_second),
                   at_rate(up, link.root_upload_bytes_per_second),
                   at_rate(down, link.root_download_bytes_per_second),
                   at_rate(up + link.host_download_weight * down, link.host_bytes_per_second)});
}

ROUNDPIPE_INLINE double slot_iteration_seconds(std::span<StageLayout const> stages,
                                               ScheduleShape const& shape,
                                               std::span<LayerCost const> costs) {
  Partition partition;
  for (auto const& stage : stages) {
    (stage.has_backward() ? partition.backward : partition.forward).push_back(stage.range);
  }
  auto const& set = stages.front().working_set;
  auto const least = least_costs(costs, set);
  auto const in_round = shape.micro_batches_per_round;
  auto const of_layers = set.checkpoints() == Checkpoints::layers;
  SlotSimulation simulation(
      least,
      shape.devices,
      in_round * shape.rounds,
      {.recomputes_one_by_one = of_layers, .replays_last_layers = !of_layers});
  return simulation.simulate(partition, in_round).seconds;
}

ROUNDPIPE_INLINE double least_training_seconds(std::span<StageLayout const> stages,
                                               ParameterBlocks const& blocks,
                                               CallOutline const& call,
                                               CostModel const& costs,
                                               DeviceProperties const& device) {
  auto const machine = with_link_margin(training_machine(costs, device), call.shape.devices);
  auto const least_s = least_iteration_seconds(stages, blocks, call, machine);
  return call.dealt_round_robin
             ? std::max(least_s, slot_iteration_seconds(stages, call.shape, costs.layers()))
             : least_s;
}

}  // namespace roundpipe
