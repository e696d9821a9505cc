// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/cost_fit.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/simulated_machine.hpp>
#include <roundpipe/simulate/simulator.hpp>

namespace roundpipe {

ROUNDPIPE_INLINE SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                     DeviceProperties const& device) {
  SimulationOptions machine;
  machine.compute.layers = plan.costs.layers();
  machine.link.upload_bytes_per_second = device.upload_bytes_per_second;
  machine.link.download_bytes_per_second = device.download_bytes_per_second;
  machine.waits_for_losses = true;
  return machine;
}

ROUNDPIPE_INLINE SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                     DeviceProperties const& device,
                                                     Timeline const& timeline) {
  auto machine = simulated_machine(plan, device);
  machine.compute.layers = fit_costs(machine.compute.layers, timeline);
  machine.compute.step_s = fit_step_seconds(plan.blocks.blocks.size(), timeline);
  return machine;
}

}  // namespace roundpipe
