// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/model/dealt_rounds.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/state/gradient_scaler.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE PlanOptions plan_options(PipelineOptions const& options) {
  auto const deal = options.rank_speeds.empty()
                        ? DealtRounds(options.ranks, options.rounds)
                        : deal_rounds(options.ranks * options.rounds, options.rank_speeds);
  std::vector<std::size_t> rounds;
  for (std::size_t r = 0; r < options.ranks; ++r) {
    rounds.push_back(deal.of(r));
  }
  return {.devices = options.devices,
          .micro_batches_per_round = options.micro_batches_per_round,
          .rounds = deal.of(options.rank),
          .checkpoints = options.checkpoints,
          .offloaded_micro_batches = options.offloaded_micro_batches,
          .save_levels = options.save_levels,
          .levels_of_rounds = options.levels_of_rounds,
          .overlaps_rounds = options.overlaps_rounds,
          .resident_boundaries = options.resident_boundaries,
          .resident_parameters = options.resident_parameters,
          .buffering = options.buffering,
          .peer_boundaries = options.peer_boundaries,
          .names_least_budget = options.names_least_budget,
          .seconds_to_beat = options.seconds_to_beat,
          .ranks = options.ranks,
          .rounds_of_ranks = std::move(rounds)};
}

ROUNDPIPE_INLINE bool sums_gradients(PipelineOptions const& options) {
  return options.rounds > 1 || options.calls_per_step > 1 || options.ranks > 1;
}

ROUNDPIPE_INLINE GradientScalerOptions scaler_options(PipelineOptions const& options) {
  return {options.clip_norm, options.loss_scale.has_value()};
}

ROUNDPIPE_INLINE bool waits_for_all(PipelineOptions const& options) {
  return scaler_options(options).measures() || options.step_start == StepStart::all_blocks;
}

ROUNDPIPE_INLINE StepOptions step_options(PipelineOptions const& options,
                                          std::size_t state_arrays) {
  return {scaler_options(options).measures(),
          waits_for_all(options),
          options.state_type == StateType::declared,
          state_arrays};
}

ROUNDPIPE_INLINE FinitePasses finite_passes_of(PipelineOptions const& options) {
  return finite_passes(options.check_finite, options.loss_scale.has_value());
}

ROUNDPIPE_INLINE void shard_states(ParameterBlocks& blocks,
                                   PipelineOptions const& options,
                                   OptimizerNeeds const& optimizer) {
  if (options.ranks == 1 || !options.shard_states) {
    return;
  }
  auto const equal = std::vector<double>(options.ranks, 1.0);
  auto const& shares = options.rank_shares.empty() ? equal : options.rank_shares;
  shard_blocks(blocks, options.rank, shares, [&](BlockTensor parameter) {
    auto const name = blocks.name_of(parameter);
    return optimizer.updates_whole && optimizer.updates_whole(blocks.info_of(parameter, name));
  });
}

ROUNDPIPE_INLINE PipelineOptions quick_options(PipelineOptions options) {
  // As with a forecast, which seldom finds that they slow an iteration down.
  options.resident_boundaries =
      options.resident_boundaries.value_or(static_cast<bool>(options.forecast));
  options.forecast = {};
  if (options.ranks > 1) {
    options.host_memory = std::numeric_limits<Bytes>::max();
  }
  return options;
}

ROUNDPIPE_INLINE NameOfAction action_names(PipelinePlan const& plan) {
  return [&plan](Action const& action) -> std::string {
    if (action.layer.valid()) {
      return plan.model.layers[action.layer.index()].name;
    }
    if (!action.block.valid()) {
      return {};
    }
    auto const first_use = plan.blocks.blocks[action.block.index()].uses.front();
    return plan.model.name_of(plan.blocks.use(first_use).layer.index());
  };
}

ROUNDPIPE_INLINE OverBudget host_refusal(Bytes budget,
                                         Bytes bytes,
                                         Bytes held,
                                         std::vector<LedgerLine> ledger) {
  auto const least = bytes + held / 16;
  auto text = "the host budget of " + format_bytes(budget) + " is too small: the plan holds " +
              format_bytes(bytes - held) + " (" + std::to_string(bytes - held) +
              " bytes) in host memory" +
              (held > 0 ? ", the process " + format_bytes(held) + " besides" : "") +
              "; the smallest budget that works is " + std::to_string(least) + " bytes (" +
              format_bytes(least) + "): " + ledger_list(ledger, LedgerLine::Space::host);
  return {std::move(text), LedgerLine::Space::host, least, std::move(ledger)};
}

ROUNDPIPE_INLINE Error loss_error(PipelinePlan const& plan, std::string const& where) {
  auto const stage = plan.stages.partition.forward.size();
  return Error(Errc::not_finite,
               "the loss of " + where + " is not finite: stage " + std::to_string(stage) + ", " +
                   plan.model.name_of(plan.model.size() - 1));
}

}  // namespace roundpipe
