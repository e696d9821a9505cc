// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The machine that a pipeline runs on, for simulations of its plan.

#include <roundpipe/bubble/cost_fit.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/simulate/simulator.hpp>

namespace roundpipe {

/// Layers take what \p plan's costs say, steps no time, and copies what the links of \p device,
/// each alone, take; the caller waits for each loss. For `forecast_iteration_seconds(plan.graph,
/// plan.step, ...)`, say.
[[nodiscard]] inline SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                         DeviceProperties const& device) {
  SimulationOptions machine;
  machine.compute.layers = plan.costs.layers();
  machine.link.upload_bytes_per_second = device.upload_bytes_per_second;
  machine.link.download_bytes_per_second = device.download_bytes_per_second;
  machine.waits_for_losses = true;
  return machine;
}

/// The same, but layers and steps take what they took in \p timeline, a pipeline's own.
/// \throws Error (invalid_argument) as \ref fit_costs and \ref fit_step_seconds do.
[[nodiscard]] inline SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                         DeviceProperties const& device,
                                                         Timeline const& timeline) {
  auto machine = simulated_machine(plan, device);
  machine.compute.layers = fit_costs(machine.compute.layers, timeline);
  machine.compute.step_s = fit_step_seconds(plan.blocks.blocks.size(), timeline);
  return machine;
}

}  // namespace roundpipe
