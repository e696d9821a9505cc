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
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/probe/cost_file.hpp>
#include <roundpipe/runtime/probe/device_budget.hpp>
#include <roundpipe/runtime/probe/measure_costs.hpp>
#include <roundpipe/runtime/probe/reach_peers.hpp>
#include <roundpipe/runtime/probe/warm_up.hpp>
#include <roundpipe/runtime/state/finite_values.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>
#include <roundpipe/runtime/state/whole_updates.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/least_time.hpp>

#include <cstddef>
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
  double seconds = 0;  ///< As of \ref FoundPlan.
  HostMemoryPlan host;
  std::vector<LedgerLine> ledger;  ///< The device's and the host's.
  ActionGraph graph;               ///< Of a training call.
  ActionGraph step;                ///< Of a step.
};

/// Calls that may be under way at once, and steps.
inline constexpr std::size_t calls_in_flight = 2;

/// The sizes of a plan, but for a device's budget.
[[nodiscard]] PlanOptions plan_options(PipelineOptions const& options);
/// Whether gradients are summed on the host, over rounds, calls or ranks.
[[nodiscard]] bool sums_gradients(PipelineOptions const& options);
[[nodiscard]] GradientScalerOptions scaler_options(PipelineOptions const& options);
/// Whether no block is updated before all gradients of the iteration are there.
[[nodiscard]] bool waits_for_all(PipelineOptions const& options);
/// Whose values \p options let be examined.
[[nodiscard]] FinitePasses finite_passes_of(PipelineOptions const& options);
[[nodiscard]] StepOptions step_options(PipelineOptions const& options, std::size_t state_arrays);

/// Lets each rank keep its shard of \p blocks alone, where \p options want that. What \p optimizer
/// updates as a whole belongs to one rank.
void shard_states(ParameterBlocks& blocks,
                  PipelineOptions const& options,
                  OptimizerNeeds const& optimizer);

/// \p options with which a plan is made at once: without a forecast, and with little host memory.
/// One of several ranks may take any there, for they have yet to agree on what each keeps.
[[nodiscard]] PipelineOptions quick_options(PipelineOptions options);

/// Names the layer or the block of each action, for errors. \p plan must outlive it.
[[nodiscard]] NameOfAction action_names(PipelinePlan const& plan);

/// The error of a plan that takes \p bytes of the host, as \p ledger says, of which the process \p
/// held without any plan. Another process may hold more: a sixteenth is allowed for that.
[[nodiscard]] OverBudget host_refusal(Bytes budget,
                                      Bytes bytes,
                                      Bytes held,
                                      std::vector<LedgerLine> ledger);

/// What \p where, a call or an evaluation, throws when its loss is not finite.
[[nodiscard]] Error loss_error(PipelinePlan const& plan, std::string const& where);

/// Plans stages, memory and graphs for a model of known \p costs on \p devices as they are now, for
/// an \p optimizer of which this is known. \p code_is_loaded: as of \ref device_budget. \p aside:
/// see \ref PlanOptions::aside.
/// \throws Error (invalid_argument) for options that do not go together; OverBudget when no plan
///         fits a device and the host: it names the least that would do, and its ledger.
template <DeviceList D, class Planner>
[[nodiscard]] PipelinePlan assemble_plan(D& devices,
                                         Planner const& planner,
                                         ShapedModel const& shaped,
                                         CostModel const& costs,
                                         PipelineOptions const& options,
                                         OptimizerNeeds const& optimizer,
                                         bool code_is_loaded = true,
                                         BoundedAsync* aside = nullptr) {
  auto const device = devices.device_properties(DeviceId(0));
  auto const budget =
      device_budget(devices, options.devices, options.device_memory, code_is_loaded);
  auto const& protocol = planner.protocol();
  require(
      options.state_type == StateType::fp32 || !copies_parameters(protocol),
      Errc::invalid_argument,
      "without fp32 weights a staleness of 1 takes two master copies: one is read, one written");
  auto const& description = shaped.model;
  auto blocks = form_blocks(description, sums_gradients(options), options.state_type);
  shard_states(blocks, options, optimizer);
  auto step = planner.step_graph(blocks, step_options(options, optimizer.state_arrays));
  auto sizes = plan_options(options);
  sizes.aside = aside;
  PlanForecast forecast;
  if (options.forecast) {
    auto const seconds = [&](StagePlan const& plan) {
      return options.forecast(planner.streamed_graph(blocks, plan, sizes), step, costs, device);
    };
    auto const least = [&](StagePlan const& plan) {
      auto const shape = planner.training_shape(plan, sizes);
      CallOutline const call{
          shape, deals_round_robin(planner.schedule(), shape), planner.handed_on(plan, sizes)};
      return least_training_seconds(plan.train, blocks, call, costs, device);
    };
    forecast = {seconds, least};
  }
  HostNeeds const needs{
      .state_arrays = optimizer.state_arrays,
      .state_type = options.state_type,
      .master_copies = protocol.master_copies(),
      .gradient_buffers = protocol.gradient_buffers(),
      .micro_batches_per_round = options.micro_batches_per_round,
      .rounds = sizes.rounds,
      .devices = options.devices,
      .ranks = options.ranks,
      .calls_in_flight = calls_in_flight,
      .update_scratch = WholeUpdates(blocks, options.state_type, optimizer).bytes(),
      .finite_check = options.devices * finite_check_bytes(finite_passes_of(options))};
  auto const plan_host = [&](StagePlan const& plan) {
    return plan_host_memory(description, blocks, shaped.batch, plan.train, needs, plan.resident);
  };
  auto const host_bytes = [&](StagePlan const& plan) {
    return total_bytes(plan_host(plan).ledger, LedgerLine::Space::host);
  };
  Bytes host_held = 0;
  if constexpr (HasHostOverhead<D>) {
    host_held = devices.host_overhead_bytes();
  }
  sizes.host_memory = options.host_memory;
  sizes.host_bytes = [&](StagePlan const& plan) { return host_bytes(plan) + host_held; };
  sizes.reaches_peers = reach_peers(devices, options.devices);
  sizes.device_memory = budget.bytes;
  sizes.held_memory = budget.held;
  if (budget.page_table_share > 0) {
    sizes.held_for = [&](StagePlan const& plan) {
      return static_cast<Bytes>(budget.page_table_share * static_cast<double>(host_bytes(plan)));
    };
  }
  auto [stages, seconds] = planner.find_stages(description, blocks, costs, sizes, forecast);
  auto host = plan_host(stages);
  auto graph = planner.streamed_graph(blocks, stages, sizes);
  auto ledger = device_ledger(stages, sizes.held_by(stages));
  ledger.insert(ledger.end(), host.ledger.begin(), host.ledger.end());
  if (host_held > 0) {
    ledger.push_back({LedgerLine::Space::host, "the program, its libraries and data", host_held});
  }
  if (auto const bytes = total_bytes(ledger, LedgerLine::Space::host);
      bytes > options.host_memory) {
    throw host_refusal(options.host_memory, bytes, host_held, std::move(ledger));
  }
  if (seconds == FoundPlan::unknown && options.forecast) {
    seconds = options.forecast(graph, step, costs, device);
  }
  return {description,
          std::move(blocks),
          costs,
          std::move(stages),
          seconds,
          std::move(host),
          std::move(ledger),
          std::move(graph),
          std::move(step)};
}

/// \ref assemble_plan; once more without `options.seconds_to_beat`, where the plan does not beat
/// it: one that loses may be any.
template <DeviceList D, class Planner>
[[nodiscard]] PipelinePlan assemble_best_plan(D& devices,
                                              Planner const& planner,
                                              ShapedModel const& shaped,
                                              CostModel const& costs,
                                              PipelineOptions options,
                                              OptimizerNeeds const& optimizer) {
  auto plan = assemble_plan(devices, planner, shaped, costs, options, optimizer);
  if (plan.seconds > options.seconds_to_beat) {
    options.seconds_to_beat = PipelineOptions{}.seconds_to_beat;
    plan = assemble_plan(devices, planner, shaped, costs, options, optimizer);
  }
  return plan;
}

/// Lets devices see the layers, where a backend wants that, and returns the costs that \p options
/// know. Where they know none but ask for measured ones, takes those that their file keeps, or
/// measures and keeps them; else estimates them. No memory stays taken. With \p have_run, layers
/// have just run, perhaps in another shape: code is loaded, and devices are warm. They are not
/// shown the layers again, and run for less before measurements.
/// \throws Error as the layers and the backend do; (invalid_argument) when \p options ask to
///         measure and \p devices are no backend; as \ref find_costs and \ref keep_costs; as \ref
///         assemble_plan does, before a layer runs, for what estimated costs give no plan.
template <class Model, DeviceList D, class Planner>
[[nodiscard]] CostModel layer_costs(Model const& model,
                                    D& devices,
                                    Planner const& planner,
                                    ShapedModel const& shaped,
                                    PipelineOptions const& options,
                                    OptimizerNeeds const& optimizer,
                                    bool have_run = false) {
  auto const device = devices.device_properties(DeviceId(0));
  bool const has_file = !options.known_costs && !options.cost_file.empty();
  auto const known = has_file ? find_costs(options.cost_file, shaped.model, device, options.devices)
                              : options.known_costs;
  bool const measures = options.costs == CostSource::measured && !known;
  auto costs = known.value_or(CostModel::estimate(shaped.model, device));
  require(costs.layers().size() == shaped.model.size(),
          Errc::invalid_argument,
          "the known costs are not those of this model's layers");
  if constexpr (Backend<D>) {
    constexpr bool warms_up = HasWarmUp<D>;
    if (warms_up || measures) {
      auto const code_is_loaded = have_run || options.known_costs.has_value();
      (void)assemble_plan(
          devices, planner, shaped, costs, quick_options(options), optimizer, code_is_loaded);
    }
    if constexpr (HasMemoryLimit<D>) {
      devices.limit_memory(options.device_memory);
    }
    double seconds = 0;
    if constexpr (warms_up) {
      seconds = D::warm_up_seconds;
      if (!have_run) {
        warm_up(model, devices, shaped.model, options.devices);
      }
    }
    if (measures) {
      auto const settling_s = seconds * (have_run ? 0.25 : 1.5);
      costs =
          measure_costs(model, devices, shaped.model, options.devices, 3, seconds / 2, settling_s);
      if (has_file) {
        keep_costs(options.cost_file, shaped.model, device, options.devices, costs);
      }
    }
  } else {
    require(!measures, Errc::invalid_argument, "costs can only be measured on a backend");
  }
  return options.costs == CostSource::measured && !options.known_costs
             ? with_round_costs(costs, shaped.model, device)
             : costs;
}

/// Plans all of a pipeline of \p model on \p devices, see \ref layer_costs and \ref
/// assemble_best_plan.
template <class Model, DeviceList D, class Planner>
[[nodiscard]] PipelinePlan make_pipeline_plan(Model const& model,
                                              D& devices,
                                              Planner const& planner,
                                              ShapedModel const& shaped,
                                              PipelineOptions const& options,
                                              OptimizerNeeds const& optimizer) {
  // In this order: a budget also holds the code of layers that have run.
  auto const costs = layer_costs(model, devices, planner, shaped, options, optimizer);
  return assemble_best_plan(devices, planner, shaped, costs, options, optimizer);
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/pipeline_plan.ipp>
#endif
