// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/cost_fit.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/simulated_machine.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/simulate/simulator.hpp>

namespace roundpipe {

ROUNDPIPE_INLINE SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                     DeviceProperties const& device) {
  return training_machine(plan.costs, device);
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
