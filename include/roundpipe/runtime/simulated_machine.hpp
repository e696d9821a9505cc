// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The machine that a pipeline runs on, for simulations of its plan, and what is live on it.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/live_bytes.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/simulate/simulator.hpp>

namespace roundpipe {

/// \ref training_machine for \p plan: for `forecast_iteration_seconds(plan.graph, plan.step, ...)`,
/// say.
[[nodiscard]] SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                  DeviceProperties const& device);

/// The same, but layers, steps and copies take what they took in \p timeline, a pipeline's own, and
/// each device has its own speed.
/// \throws Error (invalid_argument) as \ref fit_costs and \ref fit_step_seconds do.
[[nodiscard]] SimulationOptions simulated_machine(PipelinePlan const& plan,
                                                  DeviceProperties const& device,
                                                  Timeline const& timeline);

/// The most that is live at once on the fullest device of \p machine, over three iterations of
/// \p plan, see \ref live_bytes. The plan's arena has `plan.stages.memory.bytes`.
/// \throws Error (invalid_argument) like \ref simulate.
[[nodiscard]] LiveBytes most_live_bytes(PipelinePlan const& plan, SimulationOptions const& machine);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/simulated_machine.ipp>
#endif
