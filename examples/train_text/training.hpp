// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The training, the same on every backend and for the serial oracle.

#include <common/plan_text.hpp>
#include <common/precision.hpp>
#include <common/progress.hpp>
#include <common/ranks.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/simulated_machine.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <roundpipe/simulate/forecast.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

#include "chosen_optimizer.hpp"
#include "options.hpp"
#include "report.hpp"
#include "sampling.hpp"
#include "text.hpp"
#include "windows.hpp"

namespace train_text {

namespace rp = roundpipe;

inline constexpr std::int64_t vocabulary = 256;         // one for each byte
inline constexpr std::size_t validation_windows = 256;  // at most
inline constexpr std::size_t traced_iterations = 20;    // the last ones
inline constexpr std::size_t warm_up_iterations = 3;
inline constexpr std::size_t shown_prompt_bytes = 64;
inline constexpr std::size_t continuation_bytes = 256;
inline constexpr double temperature = 0.8;

/// The constants of the model.
inline rp::nn::TransformerConfig model_config(Options const& o) {
  return {.vocabulary = vocabulary,
          .hidden = o.hidden,
          .layers = o.layers,
          .heads = o.heads,
          .kv_heads = o.kv_heads,
          .dropout = o.dropout,
          .tied = o.tied,
          .storage = declared_type(o),
          .parameter = declared_type(o),
          // Keeps products at the size of their input, and steps small compared with the weights.
          .initial_deviation = 1 / std::sqrt(static_cast<double>(o.hidden))};
}

/// The training loop: the same for the pipeline and for the serial oracle.
template <class Trainer>
void train(Trainer& trainer, Options const& o, Text const& text, Outcome& outcome) {
  auto const sequences = static_cast<std::size_t>(o.batch);
  auto const rows = static_cast<std::size_t>(o.rows());
  auto const context = static_cast<std::size_t>(o.context);
  WindowDraw const draw(text.split.training, text.window, static_cast<std::uint64_t>(o.seed));
  examples::Progress progress({.steps = o.steps,
                               .seconds = o.seconds,
                               .tokens_of_step = o.batch * o.context,
                               .quiet = o.quiet});
  auto const begin = std::chrono::steady_clock::now();
  auto const cpu_begin = std::clock();
  auto const elapsed_s = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<double> losses_s;  // when each loss arrived
  for (std::int64_t step = 0; step < o.steps; ++step) {
    auto const starts = draw.starts(static_cast<std::uint64_t>(step), sequences);
    WindowBatch const windows(text.corpus.text, starts, rows, context);
    outcome.losses.push_back(trainer.forward_backward(windows.view()));
    losses_s.push_back(elapsed_s());
    trainer.step();
    progress.show(step + 1, outcome.losses.back(), elapsed_s());
    if (o.seconds > 0 && examples::as_rank_0_says(o.group, elapsed_s() >= o.seconds)) {
      break;
    }
  }
  trainer.synchronize();
  outcome.seconds = elapsed_s();
  outcome.cpu_seconds = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  auto const warm_up = std::min(warm_up_iterations, losses_s.size() - 1);
  auto const measured = std::max<std::size_t>(1, losses_s.size() - 1 - warm_up);
  outcome.iteration_s = (losses_s.back() - losses_s[warm_up]) / static_cast<double>(measured);
  outcome.tokens_per_second =
      static_cast<double>(outcome.losses.size() * sequences * context) / outcome.seconds;
}

/// Evaluates the trained model: its loss on held-out text, and a sample.
template <class Trainer>
void assess(Trainer& trainer, Options const& o, Text const& text, Outcome& outcome) {
  auto const context = static_cast<std::size_t>(o.context);
  auto const starts = validation_starts(text.split.validation, text.window, validation_windows);
  WindowBatch const windows(text.corpus.text, starts, static_cast<std::size_t>(o.rows()), context);
  outcome.validated_bytes = windows.size();
  outcome.validation = trainer.evaluate(windows.view()).loss;
  if (!std::isfinite(outcome.validation)) {
    throw rp::Error(rp::Errc::not_finite,
                    "the validation loss is not finite; a lower --lr may help");
  }
  // A whole context from the first byte on, so all windows have the same extents.
  auto const seen = text.corpus.view(text.split.validation.front()).substr(0, context);
  outcome.prompt = seen.substr(context - std::min(context, shown_prompt_bytes));
  outcome.continuation = continue_text(
      trainer, seen, continuation_bytes, context, temperature, static_cast<std::uint64_t>(o.seed));
  outcome.weights_digest = rp::weights_digest(trainer);
}

inline std::vector<std::size_t> layer_counts(std::vector<rp::LayerRange> const& stages) {
  std::vector<std::size_t> counts;
  for (auto const& stage : stages) {
    counts.push_back(stage.count);
  }
  return counts;
}

/// Trains through the pipeline. Sets micro-batches and rounds of \p o if they are to be chosen.
/// \returns the timeline of the last iterations.
template <class Ops, class Backend>
rp::Timeline run_pipeline(Backend& backend, Options& o, Text const& text, Outcome& outcome) {
  auto const model = rp::nn::transformer<Ops>(model_config(o));
  ChosenOptimizer const optimizer(o);
  rp::LayerEventProtocol const protocol{event_protocol(o)};
  bool const measures = o.automatic || !o.cost_file.empty() || o.deal == "speed";
  rp::PipelineOptions options{
      .device_memory = o.device_memory,
      .host_memory = o.host_memory,
      .clip_norm = o.clip,
      .seed = static_cast<std::uint64_t>(o.seed),
      .state_type = state_type(o),
      .loss_scale = loss_scale(o),
      .costs = measures ? rp::CostSource::measured : rp::CostSource::estimated,
      .cost_file = o.cost_file,
      .optimizer_threads = static_cast<std::size_t>(o.optimizer_threads),
      // An iteration is two runs: a call and a step.
      .timeline_calls = 2 * traced_iterations,
  };
  examples::deal_rounds(o.deal, options);
  rp::Policies const policies{.protocol = protocol, .group = o.group};
  if (o.automatic) {
    options.forecast = rp::forecast_training_seconds;
    rp::BatchCut const wanted{
        .micro_batches_per_round = static_cast<std::size_t>(o.wanted_micro_batches.value_or(0)),
        .rounds = static_cast<std::size_t>(o.wanted_rounds.value_or(0))};
    auto const choice = rp::automatic(model,
                                      optimizer,
                                      backend,
                                      options,
                                      rp::BatchShape{o.batch, o.context},
                                      wanted,
                                      policies,
                                      examples::planning_threads(o.group));
    options = choice.options;
    o.micro_batches_per_round = static_cast<std::int64_t>(options.micro_batches_per_round);
    o.rounds = static_cast<std::int64_t>(options.rounds);
    outcome.automatic = to_string(choice);
  }
  options.capacity = rp::BatchShape{o.rows(), o.context};
  options.micro_batches_per_round = static_cast<std::size_t>(o.micro_batches_per_round);
  options.rounds = static_cast<std::size_t>(o.rounds);
  rp::Pipeline pipeline{model, optimizer, backend, options, policies};
  auto const& plan = pipeline.plan();
  outcome.forward_stages = layer_counts(plan.stages.partition.forward);
  outcome.backward_stages = layer_counts(plan.stages.partition.backward);
  outcome.parameters = plan.blocks.parameter_count();
  outcome.state_bytes = plan.host.state_bytes;
  outcome.ledger = plan.ledger;
  if (!o.quiet) {
    examples::print_plan(
        plan, pipeline.options(), static_cast<std::size_t>(o.devices), outcome.automatic);
  }
  train(pipeline, o, text, outcome);
  auto timeline = pipeline.timeline();
  outcome.predicted_iteration_s = rp::forecast_iteration_seconds(
      plan.graph,
      plan.step,
      rp::simulated_machine(plan, backend.device_properties(rp::DeviceId(0)), timeline));
  auto const report = pipeline.report();
  outcome.device_busy = report.device_busy;
  outcome.device_bytes_peak = report.device_bytes_peak;
  outcome.host_bytes_peak = report.host_bytes_peak;
  assess(pipeline, o, text, outcome);
  return timeline;
}

}  // namespace train_text
