// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/simulated_machine.hpp>
#include <roundpipe/simulate/forecast.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "policies.hpp"
#include "run.hpp"

namespace train_throughput {

namespace {

namespace cu = rp::cu;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Batches of random tokens, used in turn.
class Batches {
 public:
  Batches(Options const& o, std::int64_t vocabulary)
      : count_(o.micro_batches_per_round * o.rounds), shape_{o.rows(), o.context} {
    auto const tokens = static_cast<std::size_t>(o.batch * o.context);
    for (auto& set : sets_) {
      std::uint32_t state = static_cast<std::uint32_t>(&set - sets_) + 1;
      for (auto* const list : {&set.tokens, &set.labels}) {
        list->resize(tokens);
        for (auto& token : *list) {
          state = state * 1664525U + 1013904223U;
          token = static_cast<std::int32_t>((state >> 8) % static_cast<std::uint32_t>(vocabulary));
        }
      }
    }
  }

  [[nodiscard]] rp::Batch operator[](std::size_t i) const {
    auto const& set = sets_[i % std::size(sets_)];
    rp::Batch batch(count_, shape_);
    batch.set("tokens", set.tokens).set("labels", set.labels);
    return batch;
  }

 private:
  struct Set {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> labels;
  };
  std::size_t count_;
  rp::BatchShape shape_;
  Set sets_[2];
};

/// FLOPs a second of a product of 8,192 x 8,192 matrices in \p type, the median of several.
double measure_peak(cu::CudaBackend& backend, rp::DType type) {
  constexpr std::int64_t extent = 8192;
  constexpr std::size_t repetitions = 15;
  rp::DeviceId const device(0);
  auto stream = backend.make_stream(device, rp::LaneKind::compute);
  rp::detail::RandomOperands<cu::CudaBackend> operands(backend);
  auto const bytes = static_cast<Bytes>(extent * extent) * rp::size_of(type);
  auto const memory =
      backend.allocate_device(device, 3 * bytes + cu::CudaOps::linear_scratch_bytes());
  rp::TensorCarver carver(memory.bytes());
  auto const take = [&] { return carver.take({extent, extent}, type); };
  auto const x = take();
  auto const weight = take();
  auto const y = take();
  operands.fill(stream, x);
  operands.fill(stream, weight);
  cu::CudaOps const ops(
      stream, memory.bytes().subspan(carver.used_bytes(), cu::CudaOps::linear_scratch_bytes()));
  auto begin = backend.make_event(device);
  auto end = backend.make_event(device);
  std::vector<double> times;
  for (std::size_t i = 0; i < repetitions; ++i) {
    stream.record(begin);
    ops.linear(y, x, weight, rp::absent);
    stream.record(end);
    end.wait();
    times.push_back(end.seconds_since(begin));
  }
  std::ranges::sort(times);
  return 2.0 * static_cast<double>(extent) * static_cast<double>(extent) *
         static_cast<double>(extent) / times[times.size() / 2];
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

Outcome run(Options& o, rp::nn::TransformerConfig const& shape) {
  auto const begin = Clock::now();
  auto config = shape;
  config.storage = config.parameter = o.precision == "fp16" ? rp::DType::f16 : rp::DType::bf16;
  config.loss_chunk = o.loss_chunk;
  Outcome outcome;

  cu::CudaBackend backend(cu::CudaBackendOptions{
      .devices = cu::first_devices(o.devices),
      .device_memory_bytes = o.device_memory,
  });
  outcome.device = backend.device_properties(rp::DeviceId(0)).name;
  outcome.peak_flops = 1e12 * o.peak_tflops;
  outcome.peak_source = "given";
  if (o.peak_tflops == 0) {
    outcome.peak_flops = measure_peak(backend, config.storage);
    outcome.peak_source = "measured: a product of 8192 x 8192 matrices";
  }

  std::optional<rp::LossScaleOptions> loss_scale;
  if (o.precision == "fp16") {
    loss_scale.emplace();
  }
  auto model = rp::nn::transformer<cu::CudaOps>(config);
  rp::AdamW optimizer;
  rp::PipelineOptions options{
      .devices = o.devices,
      .device_memory = o.device_memory,
      .state_type = o.states == "declared" ? rp::StateType::declared : rp::StateType::fp32,
      .loss_scale = loss_scale,
      .costs = rp::CostSource::measured,
      .forecast = rp::forecast_training_seconds,
      .checkpoints = o.checkpoints == "auto"
                         ? std::nullopt
                         : std::optional(o.checkpoints == "layers" ? rp::Checkpoints::layers
                                                                   : rp::Checkpoints::stages),
      .offloaded_micro_batches = o.offload,
      .timeline_calls = 2 * (o.warmup + o.steps),
  };
  if (o.micro_batches_per_round == 0) {
    auto const choice = rp::automatic(model,
                                      optimizer.state_arrays(),
                                      backend,
                                      options,
                                      {o.batch, o.context},
                                      rp::BatchCut{.rounds = o.rounds},
                                      schedule_of(o),
                                      transfers_of(o),
                                      protocol_of(o),
                                      partitioner_of(o));
    outcome.automatic = to_string(choice);
    o.micro_batches_per_round = choice.options.micro_batches_per_round;
    o.rounds = choice.options.rounds;
    outcome.automatic_s = seconds_since(begin);
  }
  options.capacity = {o.rows(), o.context};
  options.micro_batches_per_round = o.micro_batches_per_round;
  options.rounds = o.rounds;
  rp::Pipeline pipeline{std::move(model),
                        std::move(optimizer),
                        backend,
                        options,
                        schedule_of(o),
                        transfers_of(o),
                        protocol_of(o),
                        partitioner_of(o)};
  auto const& plan = pipeline.plan();
  outcome.parameters = plan.blocks.parameter_count();
  outcome.forward_stages = layer_counts(plan.stages.partition.forward);
  outcome.backward_stages = layer_counts(plan.stages.partition.backward);
  for (std::size_t i = 0; i < plan.blocks.layer_uses.size(); ++i) {
    outcome.offloaded = std::max(outcome.offloaded, plan.host.working_set.count(i));
  }
  outcome.checkpoints_of_layers = plan.host.working_set.checkpoints() == rp::Checkpoints::layers;
  auto const costs = rp::average_costs(plan.costs.layers(), plan.host.working_set);
  outcome.t_max_s = rp::slowest_stage_seconds(costs, plan.stages.partition);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (i == 0 || costs[i].backward_s != costs[i - 1].backward_s) {
      outcome.costs.push_back({i, costs[i].forward_s, costs[i].backward_s});
    }
  }
  outcome.device_arena_bytes = plan.stages.memory.bytes;
  outcome.ledger = plan.ledger;
  for (auto const& range : plan.stages.partition.forward) {
    outcome.computing_s += rp::stage_seconds(costs, rp::StageDirection::forward, range);
  }
  outcome.computing_s += rp::stage_seconds(costs, rp::StageDirection::backward, {0, costs.size()});
  outcome.computing_s *=
      static_cast<double>(o.micro_batches_per_round * o.rounds) / static_cast<double>(o.devices);
  auto const device = backend.device_properties(rp::DeviceId(0));
  auto const forecast = [&](rp::SimulationOptions const& machine) {
    return rp::forecast_iteration_seconds(plan.graph, plan.step, machine);
  };
  if (!o.sync) {  // the optimizer's time is still unknown
    outcome.predicted_s = forecast(rp::simulated_machine(plan, device));
  }
  Batches const batches(o, config.vocabulary);
  outcome.setup_s = seconds_since(begin);

  // A loss returns at the same point of every iteration, so the time between two losses is a
  // period.
  Clock::time_point last;
  for (std::size_t i = 0; i < o.warmup + o.steps; ++i) {
    if (i == o.warmup) {
      pipeline.restart_report();
    }
    outcome.loss = pipeline.forward_backward(batches[i]);
    pipeline.step();
    auto const now = Clock::now();
    if (i >= o.warmup) {
      outcome.iterations_s.push_back(std::chrono::duration<double>(now - last).count());
      outcome.window_s += outcome.iterations_s.back();
    }
    last = now;
  }
  pipeline.synchronize();
  for (std::size_t d = 0; d < o.devices; ++d) {
    auto const memory = cu::memory_info(backend.ordinal(rp::DeviceId(d)));
    auto const used = memory.total_bytes - memory.free_bytes;
    outcome.device_memory.push_back({used, used - std::min(used, outcome.device_arena_bytes)});
  }
  auto const report = pipeline.report();
  outcome.calls = o.steps;
  outcome.device_busy = report.device_busy;
  outcome.training_s = report.training_s;
  outcome.bubbles = report.bubbles;
  outcome.host_bytes = report.host_bytes_peak;
  auto const timeline = pipeline.timeline();
  if (auto const warm_up = runs(timeline, 0, 2 * o.warmup); !warm_up.entries.empty()) {
    outcome.refitted_s = forecast(rp::simulated_machine(plan, device, warm_up));
  }
  if (!o.trace.empty()) {
    auto const all = 2 * (o.warmup + o.steps);
    outcome.timeline = runs(timeline, all - std::min<std::size_t>(all, 4), all);
  }
  return outcome;
}

}  // namespace train_throughput
