// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The training, the same on every backend.

#include <common/model_flops.hpp>
#include <common/plan_text.hpp>
#include <common/precision.hpp>
#include <common/progress.hpp>
#include <common/ranks.hpp>
#include <common/stop_request.hpp>
#include <roundpipe/architectures/adapter_weights.hpp>
#include <roundpipe/architectures/checkpoint_weights.hpp>
#include <roundpipe/data/batch_loader.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/resident_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "curve.hpp"
#include "job.hpp"
#include "options.hpp"
#include "output.hpp"
#include "rate.hpp"
#include "report.hpp"
#include "step_times.hpp"

namespace finetune {

namespace rp = roundpipe;

inline constexpr std::size_t traced_steps = 20;  // the last ones

/// The rows of a step, and of its micro-batches.
[[nodiscard]] inline rp::BatchRows rows_of(rp::PipelineOptions const& options) {
  auto const rows = static_cast<std::uint64_t>(options.capacity.rows);
  return {rows * options.micro_batches_per_round * options.rounds * options.ranks, rows};
}

/// The mean loss of the rows that the job evaluates, over all positions that predict something.
template <class Trainer>
[[nodiscard]] double evaluate(Trainer& trainer, Job const& job) {
  auto const all = rows_of(trainer.options());
  double sum = 0;
  double count = 0;
  rp::TokenBatch batch;
  for (std::uint64_t row = 0; row < job.evaluated_rows; row += all.rows) {
    rp::BatchRows const cut{std::min(all.rows, job.evaluated_rows - row), all.micro_batch_rows};
    if (job.data.held_out_rows() > 0) {
      static_cast<void>(job.data.read_held_out(row, cut, batch));
    } else {
      job.data.read(row, cut, batch);
    }
    if (auto const predictions = static_cast<double>(batch.predictions()); predictions > 0) {
      sum += trainer.evaluate(batch.view()).loss * predictions;
      count += predictions;
    }
  }
  auto const loss = sum / count;
  if (!std::isfinite(loss)) {
    throw rp::Error(rp::Errc::not_finite,
                    count > 0 ? "the evaluation loss is not finite; a lower --lr may help"
                              : "the rows to evaluate have no labels");
  }
  return loss;
}

/// The options of the pipeline, with the cut of the batch.
template <class Model, class Backend>
[[nodiscard]] rp::PipelineOptions choose_options(Model const& model,
                                                 rp::AdamW const& optimizer,
                                                 Backend& backend,
                                                 Options const& o,
                                                 Job const& job,
                                                 rp::Policies const& policies,
                                                 Outcome& outcome) {
  rp::PipelineOptions options{
      .device_memory = o.device_memory,
      .host_memory = o.host_memory,
      .clip_norm = o.clip,
      .seed = o.seed,
      .state_type = state_type(o),
      .loss_scale = loss_scale(o),
      // Emulated devices have no speed that is worth to measure, and equal choices on all machines.
      .costs = o.backend == "cuda" ? rp::CostSource::measured : rp::CostSource::estimated,
      .forecast = rp::forecast_training_seconds,
      .timeline_calls = o.trace.empty() ? 0 : 2 * traced_steps,
  };
  examples::deal_rounds(o.deal, options);
  auto const cut = given_cut(o, job);
  if (cut.micro_batches_per_round == 0) {
    auto const choice = rp::automatic(model,
                                      optimizer,
                                      backend,
                                      options,
                                      {o.batch, o.context},
                                      cut,
                                      policies,
                                      examples::planning_threads(o.group));
    outcome.automatic = to_string(choice);
    return choice.options;
  }
  options.micro_batches_per_round = cut.micro_batches_per_round;
  options.rounds = cut.rounds;
  options.capacity = {o.batch / static_cast<std::int64_t>(cut.micro_batches_per_round * cut.rounds *
                                                          o.group.size()),
                      o.context};
  return options;
}

/// Fills the weights: from the checkpoint, the adapters, and the snapshot.
template <class Trainer>
void load(
    Trainer& trainer, Job const& job, Options const& o, rp::WorkerPool& pool, Outcome& outcome) {
  auto const begin = std::chrono::steady_clock::now();
  rp::load_weights(trainer, job.names, job.checkpoint, pool);
  if (!o.adapter.empty()) {
    rp::load_adapter(trainer, job.names, o.adapter, pool);
  }
  if (job.snapshot) {
    auto const& snapshot = *job.snapshot;
    outcome.steps_before = static_cast<std::int64_t>(snapshot.position().step);
    outcome.curve = LossCurve::from(
        snapshot.program(), outcome.steps_before, (snapshot.path() / "snapshot.json").string());
    trainer.restore(snapshot.state(trainer.state()));
  }
  outcome.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Trains until all steps are done, or the user wants to stop. Leaves a snapshot where the options
/// or the user ask for one.
template <class Trainer>
void train(Trainer& trainer,
           Options const& o,
           Job const& job,
           rp::DataPosition const& position,
           double peak_flops,
           Outcome& outcome) {
  auto const cut = rows_of(trainer.options());
  rp::BatchLoader loader(job.data, cut, position);
  std::optional<rp::SnapshotWriter> snapshots;
  auto const writes = o.group.rank() == 0;
  auto const save = [&] {
    if (!snapshots) {
      snapshots.emplace(job.snapshots(), snapshot_options(o, job));
    }
    snapshots->save(
        trainer.state(),
        {.data = loader.position(), .program = snapshot_note(outcome, trainer.options())});
  };
  auto const evaluate_now = [&](std::int64_t step) {
    if (writes) {  // the others wait in their next call
      outcome.curve.evaluations.push_back({step, evaluate(trainer, job)});
    }
  };
  auto const tokens = o.batch * o.context;
  auto const flops =
      examples::model_flops(job.model.transformer, o.context, static_cast<double>(tokens));
  examples::StopRequest const stop;
  examples::Progress progress({.steps = job.steps,
                               .steps_before = outcome.steps_before,
                               .tokens_of_step = tokens,
                               .flops_of_step = flops,
                               .peak_flops = peak_flops,
                               .quiet = o.quiet});
  if (o.evaluate_every > 0 && outcome.steps_before == 0) {
    evaluate_now(0);
  }
  StepTimes times;
  auto const end = o.stop_after > 0 ? std::min(o.stop_after, job.steps) : job.steps;
  for (auto step = outcome.steps_before;
       step < end && !examples::as_rank_0_says(o.group, bool{stop});) {
    outcome.curve.losses.push_back(trainer.forward_backward(loader.next().view()));
    times.add_step();
    trainer.step();
    progress.show(++step, outcome.curve.losses.back(), times.seconds());
    if (o.evaluate_every > 0 && step % o.evaluate_every == 0 && step < job.steps) {
      evaluate_now(step);
      times.add_pause();
    }
    if (o.save_every > 0 && (step % o.save_every == 0 || step == job.steps)) {
      save();
      if (writes) {
        write_curve(job, outcome.curve);
      }
      times.add_pause();
    }
  }
  outcome.stopped = static_cast<std::int64_t>(outcome.curve.losses.size()) < job.steps;
  if (outcome.stopped) {
    save();
  }
  if (snapshots) {
    snapshots->wait();
  }
  outcome.seconds = times.seconds();
  outcome.data_stalls = loader.stalls();
  if (auto const step_s = times.step_seconds(); step_s > 0) {
    outcome.tokens_per_second = static_cast<double>(tokens) / step_s;
    outcome.mfu = peak_flops > 0 ? flops / step_s / peak_flops : 0;
  }
}

/// Trains through a pipeline, and writes the output folder. \p peak_flops is that of one device, in
/// a second; 0: not known. \returns the timeline of the last steps.
template <class Ops, class Backend>
rp::Timeline run_pipeline(
    Backend& backend, Options const& o, Job& job, double peak_flops, Outcome& outcome) {
  auto const resident = rp::resident_set_bytes();
  auto const model = rp::nn::transformer<Ops>(job.model.transformer);
  auto const optimizer = optimizer_of(o, job.steps);
  rp::Policies const policies{.protocol = rp::LayerEventProtocol{event_protocol(o)},
                              .group = o.group};
  auto const options = choose_options(model, optimizer, backend, o, job, policies, outcome);
  rp::Pipeline pipeline{model, optimizer, backend, options, policies};
  note_plan(pipeline.plan(), pipeline.options(), outcome);
  if (!o.quiet) {
    examples::print_plan(pipeline.plan(), pipeline.options(), outcome.devices, outcome.automatic);
  }
  rp::WorkerPool pool(rp::usable_cpus().threads);
  auto const position = data_position(job);
  load(pipeline, job, o, pool, outcome);
  job.snapshot.reset();  // a newer one may replace it
  outcome.resident_growth = std::max(resident, rp::resident_set_bytes()) - resident;
  auto const devices = static_cast<double>(outcome.devices * o.group.size());
  train(pipeline, o, job, position, peak_flops * devices, outcome);
  auto timeline = pipeline.timeline();
  auto const report = pipeline.report();
  outcome.device_bytes_peak = report.device_bytes_peak;
  outcome.host_bytes_peak = report.host_bytes_peak;
  auto const writes = o.group.rank() == 0;
  if (writes) {
    write_curve(job, outcome.curve);
  }
  if (outcome.stopped) {
    return timeline;
  }
  pipeline.synchronize();
  write_weights(pipeline, o, job, pool);
  if (!writes) {
    return timeline;
  }
  outcome.evaluation_loss = evaluate(pipeline, job);
  outcome.curve.evaluations.push_back({job.steps, *outcome.evaluation_loss});
  write_curve(job, outcome.curve);
  return timeline;
}

}  // namespace finetune
