// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What does the optimizer cost an iteration, ordered by events of each block, or by barriers over
// the whole model? The bench varies the number of layers and the optimizer's time. Updates begin as
// soon as they can, or (`all_blocks`, the pipeline's default) when all gradients have landed, so
// that a failed iteration keeps the weights. It also measures what `verify` costs.
//
// And what do the gradients and weights of other ranks cost, over a network that takes half of an
// iteration? Two ranks are threads with a loopback between them. The baseline is a plain loop: one
// all-reduce of everything between the backward and the step.
//
// On the host backend compute and updates are sleeps, so any number of devices fits two cores.
// Times are the emulation's: only the ratios within one run mean anything. `stall` is the share of
// an iteration that would vanish if the optimizer took no time.
//
// ROUNDPIPE_BENCH_LARGE=1 asks for all sizes; without it the run is short.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/runtime/pipeline.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/busy_host.hpp"
#include "support/large.hpp"
#include "support/timed_layer.hpp"

namespace {

using namespace roundpipe;
using namespace roundpipe::bench;
using Clock = std::chrono::steady_clock;

constexpr std::size_t device_count = 2;
constexpr std::size_t micro_batches = 4;
constexpr std::chrono::microseconds forward_time{1000};  // a layer; its backward takes twice that

/// The compute of all devices together in an iteration, without recomputation, over the devices.
std::chrono::duration<double> compute_time(std::size_t layers) {
  return 3.0 * static_cast<double>(micro_batches * layers) *
         std::chrono::duration<double>(forward_time) / static_cast<double>(device_count);
}

/// Seconds an iteration in the steady state, if the updates of all \p layers layers together take
/// \p optimizer_share of \ref compute_time. 0: the loss was wrong.
template <EventProtocol P>
double iteration_seconds(P const& protocol,
                         std::size_t layers,
                         double optimizer_share,
                         StepStart step_start) {
  constexpr int warm_up = 3;
  constexpr int measured = 6;
  // A P copy moves 6 bytes a parameter, an update 28.
  auto const update = optimizer_share * compute_time(layers) / static_cast<double>(layers);
  auto const copy = copies_parameters(protocol) ? update * 6 / 28 : 0 * update;
  HostBackendOptions devices;
  devices.devices = device_count;
  devices.link = {20e9, 20e9, 10e-6};
  devices.delay = [=](DeviceId, LaneKind kind) {
    auto const pause = kind == LaneKind::optimizer        ? update
                       : kind == LaneKind::parameter_copy ? copy
                                                          : 0 * update;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(pause);
  };
  HostBackend backend{devices};
  PipelineOptions options;
  options.micro_batches_per_round = micro_batches;
  options.step_start = step_start;
  Pipeline pipeline{timed_model<Busy>({64_KiB, 64_KiB, forward_time}, layers),
                    Sgd{},
                    backend,
                    options,
                    Policies{.protocol = protocol}};
  Batch const batch(micro_batches, {1, 1});
  auto start = Clock::now();
  for (int i = 0; i < warm_up + measured; ++i) {
    if (i == warm_up) {
      start = Clock::now();
    }
    if (pipeline.forward_backward(batch) != static_cast<double>(micro_batches)) {  // one from each
      return 0;
    }
    pipeline.step();
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / measured;
}

template <class P>
void iteration(benchmark::State& state,
               EventProtocolOptions options,
               StepStart start = StepStart::each_block) {
  auto const layers = static_cast<std::size_t>(state.range(0));
  auto const share = static_cast<double>(state.range(1)) / 100;
  double stall = 0;
  for (auto _ : state) {
    auto const without = iteration_seconds(P(options), layers, 0, start);
    auto const with = iteration_seconds(P(options), layers, share, start);
    if (without == 0 || with == 0) {
      state.SkipWithError("the loss is wrong");
      return;
    }
    state.SetIterationTime(with);
    stall += 1 - without / with;
  }
  state.counters["stall"] = benchmark::Counter(stall, benchmark::Counter::kAvgIterations);
}

void event_based(benchmark::State& state, EventProtocolOptions options) {
  iteration<LayerEventProtocol>(state, options);
}
void all_blocks(benchmark::State& state, EventProtocolOptions options) {
  iteration<LayerEventProtocol>(state, options, StepStart::all_blocks);
}
void blocking(benchmark::State& state, EventProtocolOptions options) {
  iteration<BlockingProtocol>(state, options);
}

/// How two ranks bring their gradients together.
enum class Ranks : std::uint8_t {
  alone,     ///< They do not: each trains for itself.
  grouped,   ///< As a group: block by block, beside the compute.
  blocking,  ///< In one exchange after the backward, while everything else waits.
};

/// Median seconds of an iteration of rank 0 of two. 0: the loss was wrong.
/// \param network_s  That the network needs in an iteration.
double rank_iteration_seconds(Ranks ranks, int staleness, std::size_t layers, double network_s) {
  constexpr std::size_t warm_up = 3;
  std::size_t const measured = is_large() ? 20 : 4;
  auto const forward = 2 * forward_time;
  constexpr Bytes parameter_bytes = 64_KiB;
  auto const parameters = static_cast<double>(layers * parameter_bytes);
  // A rank receives the gradients of its half, and the weights of the other.
  LoopbackNetwork network(2, {.bytes_per_second = network_s > 0 ? parameters / network_s : 0});
  std::vector<double> seconds;
  std::atomic<bool> right = true;
  auto const train = [&](std::size_t rank) {
    LoopbackGroup group(network, rank);
    HostBackendOptions devices;
    devices.devices = device_count;
    devices.link = {20e9, 20e9, 10e-6};
    HostBackend backend{devices};
    PipelineOptions options;
    options.micro_batches_per_round = micro_batches;
    Policies policies{.protocol = LayerEventProtocol(staleness)};
    if (ranks == Ranks::grouped) {
      policies.group = group;
    }
    Pipeline pipeline{timed_model<Busy>({parameter_bytes, 64_KiB, forward}, layers),
                      Sgd{},
                      backend,
                      options,
                      policies};
    auto const rounds = ranks == Ranks::grouped ? group.size() : 1;
    Batch const batch(rounds * micro_batches, {1, 1});

    std::vector<std::byte> const mine(layers * parameter_bytes);
    std::vector<std::byte> theirs(mine.size());
    std::vector<ConstHostBytes> sent(2);
    std::vector<HostBytes> received(2);
    sent[1 - rank] = mine;
    received[1 - rank] = theirs;
    for (std::size_t i = 0; i < warm_up + measured; ++i) {
      auto const start = Clock::now();
      if (pipeline.forward_backward(batch) != static_cast<double>(rounds * micro_batches)) {
        right = false;
      }
      if (ranks == Ranks::blocking) {
        pipeline.synchronize();  // the last gradient is there
        group.exchange(GroupChannel::gradients, sent, received);
      }
      pipeline.step();
      if (rank == 0 && i >= warm_up) {
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  std::ranges::sort(seconds);
  return right ? seconds[measured / 2] : 0;
}

/// With a network that needs half of an iteration without one.
void network(benchmark::State& state, Ranks ranks, int staleness) {
  auto const layers = static_cast<std::size_t>(state.range(0));
  double longer = 0;
  for (auto _ : state) {
    auto const apart = ranks == Ranks::blocking ? Ranks::alone : ranks;
    auto const without = rank_iteration_seconds(apart, staleness, layers, 0);
    auto const with = rank_iteration_seconds(ranks, staleness, layers, without / 2);
    if (without == 0 || with == 0) {
      state.SkipWithError("the loss is wrong");
      return;
    }
    state.SetIterationTime(with);
    longer += with / without - 1;
  }
  state.counters["longer"] = benchmark::Counter(longer, benchmark::Counter::kAvgIterations);
}

/// \c verify of a plan, as the pipeline calls it before step 1.
void verify_plan(benchmark::State& state) {
  auto const layers = static_cast<std::size_t>(state.range(0));
  PlanOptions const options{.devices = static_cast<std::size_t>(state.range(1)),
                            .micro_batches_per_round = static_cast<std::size_t>(state.range(2)),
                            .rounds = 1,
                            .device_memory = 1_GiB};
  auto const model = describe(timed_model<Busy>({64_KiB, 64_KiB, forward_time}, layers), {1, 1});
  auto const blocks = form_blocks(model);
  auto const costs = CostModel::estimate(model, DeviceProperties{});
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  auto const stages = planner.plan_stages(model, blocks, costs, options);
  auto const call = planner.streamed_graph(blocks, stages, options);
  auto const step = planner.step_graph(blocks, {});
  auto const flush = planner.flush_graph(blocks);
  auto const evaluation =
      planner.evaluation_graph(blocks, stages, options, options.micro_batches_per_round);
  auto const sequence = training_sequence({call, step, flush, evaluation}, options.devices);
  auto const start = Clock::now();
  for (auto _ : state) {
    if (!verify(sequence).empty()) {
      state.SkipWithError("the plan is not safe");
      return;
    }
  }
  auto const seconds = std::chrono::duration<double>(Clock::now() - start).count();
  state.counters["actions"] = static_cast<double>(sequence.unroll().size());
  state.counters["share_of_minute"] = seconds / static_cast<double>(state.iterations()) / 60;
}

constexpr EventProtocolOptions double_master{.master_copies = 2};
constexpr EventProtocolOptions single_master{.master_copies = 1};
constexpr EventProtocolOptions two_gradients{.master_copies = 2, .gradient_buffers = 2};
constexpr EventProtocolOptions synchronous{.staleness = 0};

void by_layers_and_cost(benchmark::internal::Benchmark* bench) {
  auto const all = bench::is_large();
  bench->ArgNames({"layers", "optimizer_percent"})
      ->ArgsProduct({all ? std::vector<std::int64_t>{8, 32} : std::vector<std::int64_t>{8},
                     all ? std::vector<std::int64_t>{10, 25, 50} : std::vector<std::int64_t>{50}})
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

void by_layers(benchmark::internal::Benchmark* bench) {
  bench->ArgName("layers")->Arg(8)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}

void by_plan(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"layers", "devices", "micro_batches"})
      ->Args({10, 2, 4})
      ->Unit(benchmark::kMillisecond);
  if (bench::is_large()) {
    bench->Args({34, 4, 8})->Args({66, 8, 16});
  }
}

BENCHMARK_CAPTURE(event_based, doubled, double_master)
    ->Name("protocol/event/double")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(event_based, single, single_master)
    ->Name("protocol/event/single")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(event_based, gradients, two_gradients)
    ->Name("protocol/event/double_two_gradients")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(event_based, sync, synchronous)
    ->Name("protocol/event/synchronous")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(all_blocks, doubled, double_master)
    ->Name("protocol/all_blocks/double")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(all_blocks, gradients, two_gradients)
    ->Name("protocol/all_blocks/double_two_gradients")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(all_blocks, single, single_master)
    ->Name("protocol/all_blocks/single")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(all_blocks, sync, synchronous)
    ->Name("protocol/all_blocks/synchronous")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(blocking, doubled, double_master)
    ->Name("protocol/blocking/double")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(blocking, single, single_master)
    ->Name("protocol/blocking/single")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(blocking, sync, synchronous)
    ->Name("protocol/blocking/synchronous")
    ->Apply(by_layers_and_cost);
BENCHMARK_CAPTURE(network, grouped, Ranks::grouped, 1)
    ->Name("protocol/network/group")
    ->Apply(by_layers);
BENCHMARK_CAPTURE(network, synchronous, Ranks::grouped, 0)
    ->Name("protocol/network/group_synchronous")
    ->Apply(by_layers);
BENCHMARK_CAPTURE(network, blocking, Ranks::blocking, 0)
    ->Name("protocol/network/blocking")
    ->Apply(by_layers);
BENCHMARK(verify_plan)->Name("protocol/verify")->Apply(by_plan);

}  // namespace
