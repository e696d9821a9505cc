// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How long do planning and simulating take? The bench varies the layers (equal or all different,
// with memory limits or without), the devices and the micro-batches. The baseline of planning tries
// every t_max with dynamic programming; its partitions must be as good. The baseline of save levels
// is a table over every lag of the link; its levels must spare as much, and in small cases as much
// as the best of all choices. The baseline of simulating knows slots alone; with copies that take
// no time both must agree. The choice of `automatic` over all cuts of a batch has none: it must be
// as fast as any cut that was tried.
//
// Times are medians of the repetitions. The last layer is a head, as the names "94 + 1" count it.
// ROUNDPIPE_BENCH_LARGE=1 asks for all sizes; without it the run is short.

#include <common/described_transformer.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/estimate/shape_costs.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/memory/memory_limit.hpp>
#include <roundpipe/memory/stage_memory.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/plan/level_policy.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/step_graph.hpp>
#include <roundpipe/plan/streamed_graph.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/automatic_choice.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/simulate/least_time.hpp>
#include <roundpipe/simulate/simulated_bubbles.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <roundpipe/system/bounded_async.hpp>
#include <support/exhaustive_levels.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "support/large.hpp"

namespace {

using namespace roundpipe;

/// The arguments of a benchmark.
struct Case {
  std::size_t layers;
  bool different;  ///< No two layers cost the same; otherwise all but the head do.
  bool limited;    ///< By device memory.
  std::size_t devices;
  std::size_t micro_batches_per_call;

  explicit Case(benchmark::State const& state)
      : layers(static_cast<std::size_t>(state.range(0))),
        different(state.range(1) != 0),
        limited(state.range(2) != 0),
        devices(static_cast<std::size_t>(state.range(3))),
        micro_batches_per_call(static_cast<std::size_t>(state.range(4))) {}
};

PartitionProblem problem_of(Case const& c) {
  PartitionProblem problem{.devices = c.devices,
                           .micro_batches_per_call = c.micro_batches_per_call};
  std::vector<LayerBytes> bytes;
  for (std::size_t i = 0; i < c.layers; ++i) {
    auto const draw = [&](std::uint32_t what) {
      return c.different ? static_cast<double>(uniform(random_word({what}, i))) : 0.5;
    };
    auto const head = i + 1 == c.layers;
    auto const forward_s = (head ? 0.03 : 0.01) * (0.5 + draw(1));
    problem.costs.push_back(
        {forward_s, forward_s * (1.5 + draw(2)), forward_s * (0.9 + 0.2 * draw(3))});
    auto const megabytes = [&](double size, std::uint32_t what) {
      return static_cast<Bytes>(size * (0.5 + draw(what)) * 1e6);
    };
    bytes.push_back({megabytes(400, 4),
                     megabytes(400, 5),
                     head ? 0 : megabytes(64, 6),
                     megabytes(600, 7),
                     megabytes(300, 8)});
  }
  if (c.limited) {
    problem.fits = fits_within(StageMemory(bytes), 16_GiB);
  }
  return problem;
}

/// The least objective: for each possible time of a stage, the fewest stages that are no slower.
double least_objective(PartitionProblem const& problem) {
  auto const layers = problem.costs.size();
  auto const all = layers + 1;
  constexpr auto never = std::numeric_limits<double>::infinity();
  std::vector<double> forward(all * all, never);
  std::vector<double> backward(all * all, never);
  std::vector<double> times;
  for (std::size_t first = 0; first < layers; ++first) {
    for (auto end = first + 1; end <= layers; ++end) {
      LayerRange const range{first, end - first};
      auto const set = [&](std::vector<double>& table, StageDirection direction) {
        if (!problem.fits || problem.fits(direction, range)) {
          table[first * all + end] = stage_seconds(problem.costs, direction, range);
          times.push_back(table[first * all + end]);
        }
      };
      set(forward, StageDirection::forward);
      set(backward, StageDirection::backward);
    }
  }
  std::ranges::sort(times);
  auto const n = static_cast<double>(problem.devices);
  auto best = never;
  auto const fewest = [&](std::vector<double> const& table, double t_max) {
    std::vector<double> stages(layers, never);
    stages[0] = 0;
    for (std::size_t end = 1; end < layers; ++end) {
      for (std::size_t first = 0; first < end; ++first) {
        if (table[first * all + end] <= t_max) {
          stages[end] = std::min(stages[end], stages[first] + 1);
        }
      }
    }
    return stages;
  };
  for (auto const t_max : times) {
    auto const before = fewest(forward, t_max);
    auto const after = fewest(backward, t_max);
    for (std::size_t first = 0; first < layers; ++first) {
      if (backward[first * all + layers] <= t_max) {
        auto const stages = before[first] + 1 + after[first];
        auto const tasks =
            static_cast<double>(problem.micro_batches_per_call) * stages + n * (n - 1);
        best = std::min(best, tasks * t_max);
      }
    }
  }
  return best;
}

void bound(benchmark::State& state) {
  Case const c(state);
  auto const problem = problem_of(c);
  Partition partition;
  for (auto _ : state) {
    partition = Partitioner{}.partition(problem);
    benchmark::DoNotOptimize(partition);
  }
  if (!covers(partition, c.layers) || !fits(problem, partition)) {
    state.SkipWithError("no partition of this model");
  }
  if (c.layers <= 100) {
    auto const least = least_objective(problem);
    if (std::abs(objective(problem, partition) - least) > 1e-9 * least) {
      state.SkipWithError("the partition is not the best");
    }
  }
  state.counters["stages"] = static_cast<double>(partition.size());
}

void every_t_max(benchmark::State& state) {
  auto const problem = problem_of(Case(state));
  for (auto _ : state) {
    benchmark::DoNotOptimize(least_objective(problem));
  }
}

void simulated(benchmark::State& state, bool asynchronous) {
  Case const c(state);
  auto const problem = problem_of(c);
  SlotSimulationOptions const options{.asynchronous = asynchronous, .communication_s = 0.003};
  RoundPartition found;
  for (auto _ : state) {
    found = SimulatedPartitioner(options).search(problem);
  }
  if (!covers(found.partition, c.layers) || !fits(problem, found.partition)) {
    state.SkipWithError("no partition of this model");
  }
  SlotSimulation simulation(problem.costs, c.devices, c.micro_batches_per_call, options);
  auto least_s = std::numeric_limits<double>::infinity();
  auto const partition = Partitioner{}.partition(problem);
  for (auto const round : round_sizes(problem)) {
    least_s = std::min(least_s, simulation.simulate(partition, round).seconds);
  }
  state.counters["of_bound"] = found.call.seconds / least_s;  // the call's seconds, not the plan's
}

/// Layers with three levels above nothing; all of them together are twice what the link carries.
std::vector<SaveCandidate> candidates_of(std::size_t layers, bool different) {
  std::vector<SaveCandidate> candidates(layers);
  for (std::size_t i = 0; i < layers; ++i) {
    auto const draw = [&](std::uint32_t what, double mean) {
      auto const x = different ? static_cast<double>(uniform(random_word({what}, i))) : 0.5;
      return std::llround(mean * (0.5 + x));
    };
    candidates[i].compute = draw(1, 64);
    LevelWorth worth;
    for (std::uint32_t level = 1; level <= 3; ++level) {
      worth.transfer += draw(2 * level, 42);
      worth.spared += draw(2 * level + 1, 1000);
      candidates[i].levels.push_back(worth);
    }
  }
  limit_lag(candidates, 3);
  return candidates;
}

/// What the best levels spare, by a table over all lags.
std::int64_t most_spared(std::span<SaveCandidate const> candidates) {
  constexpr std::int64_t never = -1;
  std::vector<std::int64_t> spared(2048, never);
  spared[0] = 0;
  for (auto const& candidate : candidates) {
    std::vector<std::int64_t> next(spared.size(), never);
    auto const reach = [&](std::int64_t lag, std::int64_t value) {
      auto& best = next.at(static_cast<std::size_t>(lag));
      best = std::max(best, value);
    };
    for (std::size_t before = 0; before < spared.size(); ++before) {
      if (spared[before] == never) {
        continue;
      }
      auto const lag =
          std::max<std::int64_t>(static_cast<std::int64_t>(before) - candidate.compute, 0);
      reach(lag, spared[before]);
      for (auto const& level : candidate.levels) {
        if (lag <= level.most_lag) {
          reach(lag + level.transfer, spared[before] + level.spared);
        }
      }
    }
    spared = std::move(next);
  }
  return *std::ranges::max_element(spared);
}

void levels(benchmark::State& state) {
  auto const candidates =
      candidates_of(static_cast<std::size_t>(state.range(0)), state.range(1) != 0);
  std::vector<std::size_t> chosen;
  for (auto _ : state) {
    chosen = choose_levels(candidates);
  }
  std::int64_t spared = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    spared += chosen[i] > 0 ? candidates[i].levels[chosen[i] - 1].spared : 0;
  }
  if (spared != most_spared(candidates)) {
    state.SkipWithError("other levels spare more");
  }
}

/// Random cases that are small enough to try all choices.
void small_levels(benchmark::State& state) {
  std::mt19937 random(20261123);
  std::vector<std::vector<SaveCandidate>> cases(static_cast<std::size_t>(state.range(0)));
  std::ranges::generate(cases, [&] { return test::random_candidates(random); });
  std::vector<std::vector<std::size_t>> chosen(cases.size());
  for (auto _ : state) {
    std::ranges::transform(cases, chosen.begin(), choose_levels);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (test::spared(cases[i], chosen[i]) != test::best_by_trying(cases[i])) {
      state.SkipWithError("another choice of levels spares more");
    }
  }
}

void every_lag(benchmark::State& state) {
  auto const candidates =
      candidates_of(static_cast<std::size_t>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(most_spared(candidates));
  }
}

/// The graph of a call over layers that have nothing but costs.
class Call {
 public:
  Call(Case const& c, Partition partition)
      : description_(describe_bytes(std::vector<LayerBytes>(c.layers))),
        blocks_(form_blocks(description_)),
        partition_(std::move(partition)) {
    Buffering const buffering;
    auto const stages = lay_out_stages(description_, blocks_, partition_, buffering);
    ScheduleShape const shape{.forward_stages = partition_.forward.size(),
                              .backward_stages = partition_.backward.size(),
                              .devices = c.devices,
                              .micro_batches_per_round = c.micro_batches_per_call};
    auto const tasks = RoundRobinSchedule{}.tasks(shape);
    PriorityTransferEngine const transfers;
    graph_ = build_streamed_graph(
        {blocks_,
         stages.train,
         shape,
         tasks,
         RoundRobinSchedule{}.advance(shape),
         HostRings(stages.train, shape.micro_batches_per_round, shape.rounds),
         buffering,
         [&](std::span<Bytes const> tensors, std::size_t windows) {
           return transfers.chunks(tensors, windows);
         },
         [&](BlockEvent event) { return protocol_.before(event, blocks_.blocks.size()); }});
    set_role(graph_, GraphRole::call, protocol_);
    step_ = build_step_graph(blocks_, protocol_, {});
  }

  [[nodiscard]] GraphSequence iterations(std::size_t count) const {
    GraphSequence sequence(graph_.devices);
    for (std::size_t i = 0; i < count; ++i) {
      sequence.add(graph_).add(step_);
    }
    return sequence;
  }

 private:
  ModelDescription description_;
  ParameterBlocks blocks_;
  LayerEventProtocol protocol_{1};
  Partition partition_;
  ActionGraph graph_;
  ActionGraph step_;
};

/// Simulates \p iterations iterations of one round, action by action.
void actions(benchmark::State& state, std::size_t iterations) {
  Case const c(state);
  auto const problem = problem_of(c);
  auto const partition = Partitioner{}.partition(problem);
  Call const call(c, partition);
  SimulationOptions options;
  options.compute.layers = problem.costs;
  auto const sequence = call.iterations(iterations);
  SimulatedBubbles result;
  std::size_t count = 0;
  for (auto _ : state) {
    auto const simulation = simulate(sequence, options);
    result = account_bubbles(simulation);
    count = simulation.actions.size();
  }
  SlotSimulation slots(problem.costs, c.devices, c.micro_batches_per_call, {.asynchronous = false});
  auto const seconds = slots.simulate(partition, c.micro_batches_per_call).seconds;
  if (iterations == 1 && std::abs(result.makespan_s - seconds) > 1e-9 * seconds) {
    state.SkipWithError("the times of actions and of slots differ");
  }
  auto const all_s = result.makespan_s * static_cast<double>(c.devices);
  if (iterations == 1 && std::abs(result.busy_s + result.bubbles.total() - all_s) > 1e-9 * all_s) {
    state.SkipWithError("some idle time has no cause");
  }
  state.counters["actions"] = static_cast<double>(count);
  state.counters["actions_per_second"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate);
}

/// The joint search for an 8B model: stages, buffering, checkpoints, save levels, overlapping
/// rounds, on one thread or on all of the machine. The baseline is the plan with checkpoints of
/// stages.
void joint(benchmark::State& state) {
  auto const devices = static_cast<std::size_t>(state.range(0));
  BatchShape const micro_batch{4, 2048};
  auto const shape = model_shape("llama3.1-8b");
  DeviceProperties h200;
  h200.flops_per_second = 640e12;
  h200.memory_bytes_per_second = 4.8e12;
  h200.upload_bytes_per_second = 55e9;
  h200.download_bytes_per_second = 55e9;
  h200.host_bytes_per_second = devices > 1 ? 150e9 : 97e9;
  h200.streams_keep_engines = true;
  auto model = describe_bytes(layer_bytes(shape, micro_batch));
  auto costs = layer_costs(shape, h200, micro_batch);
  for (std::size_t i = 0; i + 1 < model.size(); ++i) {  // levels as a block's, from nothing to all
    auto const bytes = model.layers[i].footprint.saved_bytes;
    auto const forward_s = costs[i].forward_s;
    model.layers[i].save_levels = {0, bytes / 10, bytes / 4, 9 * bytes / 10, bytes};
    costs[i].replay_s = {0.73 * forward_s, 0.70 * forward_s, 0.58 * forward_s, 0.08 * forward_s};
  }
  auto const blocks = form_blocks(model, true);
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{1}, Partitioner{}};
  PlanOptions options{.devices = devices,
                      .micro_batches_per_round = 8,
                      .rounds = 2,
                      .device_memory = Bytes{24} << 30};
  auto const threads = state.range(1) != 0 ? std::thread::hardware_concurrency() : 1;
  BoundedAsync async(threads);
  options.aside = &async;
  auto const step = planner.step_graph(blocks, {});
  std::atomic<std::size_t> forecasts = 0;
  auto const simulated_s = [&](StagePlan const& plan) {
    ++forecasts;
    return forecast_training_seconds(
        planner.streamed_graph(blocks, plan, options), step, CostModel(costs), h200);
  };
  auto const least_s = [&](StagePlan const& plan) {
    auto const of_call = planner.training_shape(plan, options);
    CallOutline const call{
        of_call, deals_round_robin(planner.schedule(), of_call), planner.handed_on(plan, options)};
    return least_training_seconds(plan.train, blocks, call, CostModel(costs), h200);
  };
  PlanForecast const forecast(simulated_s, least_s);
  double seconds = 0;
  for (auto _ : state) {
    forecasts = 0;
    auto plan = async(
        [&] { return planner.plan_stages(model, blocks, CostModel(costs), options, forecast); });
    seconds = forecast(plan.get());
  }
  state.counters["threads"] = static_cast<double>(threads);
  state.counters["forecasts"] = static_cast<double>(forecasts - 1);
  state.counters["forecast_s"] = seconds;
  options.checkpoints = Checkpoints::stages;
  auto const of_stages =
      forecast(planner.plan_stages(model, blocks, CostModel(costs), options, forecast));
  if (seconds > of_stages) {
    state.SkipWithError("a plan that was tried is faster");
  }
  state.counters["speedup"] = of_stages / seconds;
}

/// The choice of `automatic` for an 8B model: micro-batches, rounds, and for each cut of the batch
/// all that \ref joint seeks; 32 sequences of 2,048 tokens a device, 24 GiB. On all threads of the
/// machine; the time is the wall's. It fails where a cut that was tried is faster by a margin.
void cuts(benchmark::State& state) {
  struct Devices {
    DeviceProperties each;
    std::size_t count;

    [[nodiscard]] std::size_t device_count() const { return count; }
    [[nodiscard]] DeviceProperties device_properties(DeviceId) const { return each; }
  } devices{{}, static_cast<std::size_t>(state.range(0))};
  devices.each.flops_per_second = 640e12;
  devices.each.memory_bytes_per_second = 3.35e12;
  devices.each.upload_bytes_per_second = 55e9;
  devices.each.download_bytes_per_second = 55e9;
  devices.each.host_bytes_per_second = devices.count > 1 ? 150e9 : 97e9;
  devices.each.streams_keep_engines = true;
  devices.each.memory_bytes = 80_GiB;
  auto const model = examples::described_transformer(model_shape("llama3.1-8b"));
  PipelineOptions options;
  options.host_memory = 1024_GiB;
  options.device_memory = 24_GiB;
  auto const threads = std::thread::hardware_concurrency();
  std::atomic<std::size_t> forecasts = 0;
  options.forecast = [&](auto const&... of_plan) {
    ++forecasts;
    return forecast_training_seconds(of_plan...);
  };
  AutomaticChoice choice;
  for (auto _ : state) {
    forecasts = 0;
    choice =
        automatic(model, AdamW{}, devices, options, {32 * state.range(0), 2048}, {}, {}, threads);
  }
  for (auto const& other : choice.tried) {
    if (other.seconds < 0.99 * choice.chosen.seconds) {
      state.SkipWithError("a cut that was tried is faster");
    }
  }
  state.counters["threads"] = static_cast<double>(threads);
  state.counters["tried"] = static_cast<double>(choice.tried.size());
  state.counters["forecasts"] = static_cast<double>(forecasts);
  state.counters["forecast_s"] = choice.chosen.seconds;
  state.SetLabel(to_string(choice));
}

/// The calls of \ref actions, slot by slot.
void slots(benchmark::State& state) {
  Case const c(state);
  auto const problem = problem_of(c);
  auto const partition = Partitioner{}.partition(problem);
  SlotSimulation simulation(
      problem.costs, c.devices, c.micro_batches_per_call, {.asynchronous = false});
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulation.simulate(partition, c.micro_batches_per_call));
  }
}

void names(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"layers", "different", "limited", "devices", "micro_batches"})
      ->Unit(benchmark::kMillisecond);
}
void medians(benchmark::internal::Benchmark* bench) {
  bench->Repetitions(5)->ReportAggregatesOnly();
}
void by_size(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{24, 95}, {1}, {0}, {8}, {16}});
  if (bench::is_large()) {
    bench->ArgsProduct({{300}, {1}, {0}, {8}, {16}})
        ->ArgsProduct({{95}, {1}, {0}, {1, 2, 32}, {16}})
        ->ArgsProduct({{95}, {1}, {0}, {8}, {8, 64}});
  }
}
void in_a_row(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{bench::is_large() ? 95 : 24}, {1}, {0}, {8}, {16}});
}
void dynamic_programs(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{bench::is_large() ? 95 : 33}, {0, 1}, {0, 1}, {8}, {16}});
}
void simulated_sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{33}, {0, 1}, {1}, {8}, {16}});
  if (bench::is_large()) {
    bench->ArgsProduct({{95}, {0, 1}, {1}, {8}, {16}});
  }
}

BENCHMARK(bound)
    ->Name("planning/bound")
    ->Apply(names)
    ->Apply(medians)
    ->ArgsProduct({{95, 1000}, {0, 1}, {0, 1}, {8}, {16}});
BENCHMARK(bound)
    ->Name("planning/bound_by_devices")
    ->Apply(names)
    ->Apply(medians)
    ->ArgsProduct({{95}, {1}, {1}, {1, 2, 4, 16, 64}, {16}})
    ->ArgsProduct({{95}, {1}, {1}, {8}, {4, 64, 256}});
BENCHMARK(every_t_max)
    ->Name("planning/every_t_max")
    ->Apply(names)
    ->Iterations(1)
    ->Apply(dynamic_programs);
BENCHMARK(levels)
    ->Name("planning/levels")
    ->ArgNames({"layers", "different"})
    ->ArgsProduct({{64, 512}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->Apply(medians);
BENCHMARK(small_levels)
    ->Name("planning/small_levels")
    ->ArgName("cases")
    ->Arg(500)
    ->Unit(benchmark::kMillisecond)
    ->Apply(medians);
BENCHMARK(every_lag)
    ->Name("planning/every_lag")
    ->ArgNames({"layers", "different"})
    ->ArgsProduct({{64}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->Apply(medians);
BENCHMARK_CAPTURE(simulated, one_call, false)
    ->Name("planning/simulated/one_call")
    ->Apply(names)
    ->Iterations(1)
    ->Apply(simulated_sizes);
BENCHMARK_CAPTURE(simulated, steady, true)
    ->Name("planning/simulated/steady")
    ->Apply(names)
    ->Iterations(1)
    ->Apply(simulated_sizes);
BENCHMARK_CAPTURE(actions, one_call, 1)
    ->Name("simulation/actions/one_call")
    ->Apply(names)
    ->Apply(by_size);
BENCHMARK_CAPTURE(actions, steady, 12)
    ->Name("simulation/actions/12_iterations")
    ->Apply(names)
    ->Apply(in_a_row);
BENCHMARK(joint)
    ->Name("planning/joint")
    ->ArgNames({"devices", "all_threads"})
    ->ArgsProduct({{1, 2, 8}, {0, 1}})
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(cuts)
    ->Name("planning/cuts")
    ->ArgName("devices")
    ->Arg(8)
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(slots)
    ->Name("simulation/slots")
    ->Apply(names)
    ->Apply(by_size)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
