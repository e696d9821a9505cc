// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <common/memory_peak.hpp>
#include <common/ranks.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/explain.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/simulated_machine.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/simulate/simulated_bubbles.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <throughput/find_peak.cuh>
#include <throughput/random_batches.hpp>
#include <train_throughput/plan_shares.hpp>
#include <train_throughput/policies.hpp>
#include <train_throughput/run.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace train_throughput {

namespace {

namespace cu = rp::cu;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<std::size_t> layer_counts(std::vector<rp::LayerRange> const& stages) {
  std::vector<std::size_t> counts;
  for (auto const& stage : stages) {
    counts.push_back(stage.count);
  }
  return counts;
}

/// Runs [first, end) of \p timeline; calls and steps alternate.
rp::Timeline runs(rp::Timeline const& timeline, std::size_t first, std::size_t end) {
  rp::Timeline part{timeline.devices, {}};
  std::ranges::copy_if(
      timeline.entries, std::back_inserter(part.entries), [&](rp::TimelineEntry const& entry) {
        return entry.graph >= first && entry.graph < end;
      });
  return part;
}

}  // namespace

Outcome run(Options& o,
            rp::nn::TransformerConfig const& config,
            Shared const& shared,
            std::function<void(Outcome const&)> const& on_plan) {
  auto const begin = Clock::now();
  Outcome outcome;

  auto const devices = cu::first_devices(o.devices, o.first_device);
  cu::CudaBackend backend(cu::CudaBackendOptions{
      .devices = devices,
      .device_memory_bytes = o.device_memory,
      .pinned = {shared.pinned},
      .resources = shared.resources,
  });
  outcome.device = backend.device_properties(rp::DeviceId(0));
  outcome.peak = throughput::find_peak(backend, o, config.storage);
  examples::MemoryPeak memory_peak(devices);

  std::optional<rp::LossScaleOptions> loss_scale;
  if (o.precision == "fp16") {
    loss_scale.emplace();
  }
  auto model = rp::nn::transformer<cu::CudaOps>(config);
  rp::AdamW optimizer;
  rp::PipelineOptions options{
      .devices = o.devices,
      .device_memory = o.device_memory,
      .host_memory = o.host_memory,
      .state_type = o.states == "declared" ? rp::StateType::declared : rp::StateType::fp32,
      .loss_scale = loss_scale,
      .costs = rp::CostSource::measured,
      .known_costs = shared.costs,
      .cost_file = o.cost_file,
      .forecast = rp::forecast_training_seconds,
      .check_finite = o.check_finite,
      .timeline_calls = 2 * (o.warmup + o.steps),
  };
  pin_plan(o, options);
  examples::deal_rounds(o.deal, options);
  auto const policies = policies_of(o);
  if (o.chooses_cut()) {
    rp::BatchCut const wanted{.micro_batches_per_round = o.micro_batches_per_round,
                              .rounds = o.rounds};
    auto const choice = rp::automatic(model,
                                      optimizer,
                                      backend,
                                      options,
                                      {o.batch, o.context},
                                      wanted,
                                      policies,
                                      examples::planning_threads(o.group));
    outcome.automatic = to_string(choice);
    options = choice.options;  // with the costs that were measured
    o.micro_batches_per_round = options.micro_batches_per_round;
    o.rounds = options.rounds;
    outcome.automatic_s = seconds_since(begin);
    outcome.measured_s = choice.measured_s;
    outcome.planned_s = choice.planned_s;
  }
  options.capacity = {o.rows(), o.context};
  options.micro_batches_per_round = o.micro_batches_per_round;
  options.rounds = o.rounds;
  rp::Pipeline pipeline{std::move(model), std::move(optimizer), backend, options, policies};
  auto const& plan = pipeline.plan();
  outcome.period = o.devices / std::gcd(o.devices, plan.graph.advance);
  auto const rounds = rp::plan_options(pipeline.options()).rounds;  // of this rank
  outcome.parameters = plan.blocks.parameter_count();
  outcome.forward_stages = layer_counts(plan.stages.partition.forward);
  outcome.backward_stages = layer_counts(plan.stages.partition.backward);
  for (std::size_t i = 0; i < plan.blocks.layer_uses.size(); ++i) {
    outcome.offloaded = std::max(outcome.offloaded, plan.host.working_set.count(i));
  }
  outcome.overlaps_rounds = plan.host.working_set.overlaps_rounds();
  outcome.checkpoints_of_layers = plan.host.working_set.checkpoints() == rp::Checkpoints::layers;
  outcome.layer_costs = plan.costs.layers();
  outcome.shares = shares_of(
      plan.model, plan.stages.partition, plan.host.working_set, o.micro_batches_per_round, rounds);
  auto const costs = rp::average_costs(plan.costs.layers(), plan.host.working_set);
  outcome.t_max_s = rp::slowest_stage_seconds(costs, plan.stages.partition);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (i == 0 || costs[i].backward_s != costs[i - 1].backward_s) {
      outcome.costs.push_back({i, costs[i].forward_s, costs[i].backward_s});
    }
  }
  using Space = rp::LedgerLine::Space;
  outcome.decisions = rp::explain(plan, pipeline.options());
  outcome.ledger = plan.ledger;
  outcome.device_ledger_bytes = rp::total_bytes(plan.stages.memory.ledger(), Space::device);
  outcome.host_ledger_bytes = rp::total_bytes(plan.ledger, Space::host);
  rp::GraphSequence iteration(o.devices);
  iteration.add(plan.graph).add(plan.step);
  auto const planned = rp::simulate(iteration, rp::simulated_machine(plan, outcome.device));
  outcome.computing_s = rp::account_bubbles(planned).busy_s / static_cast<double>(o.devices);
  auto const forecast = [&](rp::SimulationOptions machine) {
    machine.waits_for_losses = false;  // calls are posted ahead
    return rp::forecast_iteration_seconds(plan.graph, plan.step, machine);
  };
  if (!o.sync) {  // the optimizer's time is still unknown
    outcome.predicted_s = forecast(rp::simulated_machine(plan, outcome.device));
  }
  throughput::RandomBatches const batches(o.micro_batches(), options.capacity, config.vocabulary);
  if (on_plan) {
    on_plan(outcome);
  }
  outcome.setup_s = seconds_since(begin);

  // A loss is there at the same point of every iteration, so the time between two losses is a
  // period. The next call is posted before a loss is taken, so that no device waits for this loop.
  Clock::time_point last;
  for (std::size_t i = 0; i <= o.warmup + o.steps; ++i) {
    if (i == o.warmup) {
      pipeline.restart_report();
    }
    if (i < o.warmup + o.steps) {
      pipeline.post_call(batches[i]);
      pipeline.step();
    }
    if (i == 0) {
      continue;
    }
    outcome.loss = pipeline.take_loss();
    auto const now = Clock::now();
    if (i > o.warmup) {
      outcome.iterations_s.push_back(std::chrono::duration<double>(now - last).count());
    }
    last = now;
  }
  pipeline.synchronize();
  auto const report = pipeline.report();
  outcome.device_arena_bytes = report.device_bytes_peak;
  for (auto const peak : memory_peak.bytes()) {
    outcome.device_memory.push_back({peak, peak - std::min(peak, outcome.device_arena_bytes)});
  }
  outcome.calls = o.steps;
  outcome.network = report.network;
  outcome.device_busy = report.device_busy;
  outcome.training_s = report.training_s;
  outcome.bubbles = report.bubbles;
  outcome.host_bytes = report.host_bytes_peak;
  auto const unused = shared.pinned.size() - std::min(shared.pinned.size(), outcome.host_bytes);
  auto const resident = rp::resident_set_bytes();
  outcome.resident_bytes = resident - std::min(resident, unused);
  auto const timeline = pipeline.timeline();
  if (auto const warm_up = runs(timeline, 0, 2 * o.warmup); !warm_up.entries.empty()) {
    outcome.refitted_s = forecast(rp::simulated_machine(plan, outcome.device, warm_up));
  }
  if (!o.trace.empty()) {
    auto const all = 2 * (o.warmup + o.steps);
    outcome.timeline = runs(timeline, all - std::min<std::size_t>(all, 4), all);
  }
  return outcome;
}

}  // namespace train_throughput
