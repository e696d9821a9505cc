// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/cost_fit.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/live_bytes.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/simulated_machine.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/simulate/link_fit.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <algorithm>

namespace roundpipe {

namespace detail {

[[nodiscard]] ROUNDPIPE_INLINE Timeline simulate_three(PipelinePlan const& plan,
                                                       SimulationOptions const& machine) {
  GraphSequence sequence(plan.graph.devices);
  for (int iteration = 0; iteration < 3; ++iteration) {
    sequence.add(plan.graph).add(plan.step);
  }
  return simulate(sequence, machine).timeline;
}

}  // namespace detail

ROUNDPIPE_INLINE SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                     DeviceProperties const& device) {
  return training_machine(plan.costs, device);
}

ROUNDPIPE_INLINE SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                     DeviceProperties const& device,
                                                     Timeline const& timeline) {
  auto machine = simulated_machine(plan, device);
  machine.compute.layers = fit_costs(machine.compute.layers, timeline);
  machine.compute.device_speeds = fit_device_speeds(timeline);
  machine.compute.device_memory_bytes_per_second = 0;  // what copies took is in these times
  machine.compute.step_s = fit_step_seconds(plan.blocks.blocks.size(), timeline);
  machine.link = fit_link(machine.link, timeline, detail::simulate_three(plan, machine));
  return machine;
}

ROUNDPIPE_INLINE LiveBytes most_live_bytes(PipelinePlan const& plan,
                                           SimulationOptions const& machine) {
  auto const of_devices = live_bytes(detail::simulate_three(plan, machine),
                                     plan.graph,
                                     plan.model,
                                     plan.blocks,
                                     plan.stages.train);
  return *std::max_element(
      of_devices.begin(), of_devices.end(), [](LiveBytes const& a, LiveBytes const& b) {
        return a.total() < b.total();
      });
}

}  // namespace roundpipe
