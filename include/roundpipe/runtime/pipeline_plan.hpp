// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Plans all of a pipeline before step 1.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/probe/measure_costs.hpp>
#include <roundpipe/runtime/probe/warm_up.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a pipeline has planned.
struct PipelinePlan {
  ModelDescription model;
  ParameterBlocks blocks;
  CostModel costs;
  StagePlan stages;
  HostMemoryPlan host;
  std::vector<LedgerLine> ledger;  ///< The device's and the host's.
  ActionGraph graph;               ///< Of a training call.
  ActionGraph step;                ///< Of a step.
};

/// Calls that may be under way at once, and steps.
inline constexpr std::size_t calls_in_flight = 2;

[[nodiscard]] PlanOptions plan_options(PipelineOptions const& options);
[[nodiscard]] GradientScalerOptions scaler_options(PipelineOptions const& options);
/// Whether no block is updated before all gradients of the iteration are there.
[[nodiscard]] bool waits_for_all(PipelineOptions const& options);
[[nodiscard]] StepOptions step_options(PipelineOptions const& options);

/// What \p where, a call or an evaluation, throws when its loss is not finite.
[[nodiscard]] Error loss_error(PipelinePlan const& plan, std::string const& where);

/// Plans stages, memory and graphs of \p model on \p backend, for an optimizer that keeps
/// \p state_arrays numbers a parameter. Where the options or the backend ask for it, layers run
/// for it on the devices; no memory stays taken.
/// \throws Error (invalid_argument) for options that do not go together, (over_budget) when the
///         plan does not fit a device or the host.
template <class Model, Backend B, class Planner>
[[nodiscard]] PipelinePlan make_pipeline_plan(Model const& model,
                                              B& backend,
                                              Planner const& planner,
                                              ShapedModel const& shaped,
                                              PipelineOptions const& options,
                                              std::size_t state_arrays) {
  auto const& protocol = planner.protocol();
  require(
      options.state_type == StateType::fp32 || !copies_parameters(protocol),
      Errc::invalid_argument,
      "without fp32 weights a staleness of 1 takes two master copies: one is read, one written");
  auto const& description = shaped.model;
  auto blocks = form_blocks(description, options.rounds > 1 || options.calls_per_step > 1);
  auto const sizes = plan_options(options);
  auto const device = backend.device_properties(DeviceId(0));
  auto costs = CostModel::estimate(description, device);
  auto const step = planner.step_graph(blocks, step_options(options));
  std::function<double(StagePlan const&)> forecast;
  if (options.forecast) {
    forecast = [&](StagePlan const& plan) {
      return options.forecast(planner.streamed_graph(blocks, plan, sizes), step, costs, device);
    };
  }
  auto stages = planner.plan_stages(description, blocks, costs, sizes, forecast);
  double warm_up_seconds = 0;
  if constexpr (requires { B::warm_up_seconds; }) {
    warm_up_seconds = B::warm_up_seconds;
    warm_up(model, backend, description, options.devices);
  }
  if (options.costs == CostSource::measured) {
    costs = measure_costs(model, backend, description, 3, warm_up_seconds);
    stages = planner.plan_stages(description, blocks, costs, sizes, forecast);
  }
  auto graph = planner.streamed_graph(blocks, stages, sizes);
  auto host = plan_host_memory(description,
                               blocks,
                               shaped.batch,
                               stages.train,
                               {.state_arrays = state_arrays,
                                .state_type = options.state_type,
                                .master_copies = protocol.master_copies(),
                                .gradient_buffers = protocol.gradient_buffers(),
                                .micro_batches_per_round = options.micro_batches_per_round,
                                .rounds = options.rounds,
                                .calls_in_flight = calls_in_flight});
  auto ledger = stages.memory.ledger();
  ledger.insert(ledger.end(), host.ledger.begin(), host.ledger.end());
  if (auto const bytes = total_bytes(ledger, LedgerLine::Space::host);
      bytes > options.host_memory) {
    throw Error(Errc::over_budget,
                "the host budget of " + format_bytes(options.host_memory) +
                    " is too small: the plan holds " + format_bytes(bytes) + " (" +
                    std::to_string(bytes) + " bytes) in host memory");
  }
  return {description,
          std::move(blocks),
          std::move(costs),
          std::move(stages),
          std::move(host),
          std::move(ledger),
          std::move(graph),
          step};
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/pipeline_plan.ipp>
#endif
