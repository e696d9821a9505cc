// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How much transfer time stays exposed beside compute: by micro-batches of a round, by link speed,
// with planned windows against unplanned copies; and what a small copy waits for behind a large one.
//
// On the host backend compute is a sleep, so that any number of devices fits two cores. Times are
// the emulation's: only the ratios within one run mean anything.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/plan/priority_transfer_engine.hpp>
#include <roundpipe/plan/unplanned_transfers.hpp>
#include <roundpipe/runtime/pipeline.hpp>

#include "support/timed_layer.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::bench;
using Clock = std::chrono::steady_clock;

/// What the benches need of a backend besides its concept.
template <class B>
struct Bench;

template <>
struct Bench<HostBackend> {
  struct Busy {
    static void spend(HostStream& stream, std::chrono::microseconds duration) {
      stream.launch([duration] { std::this_thread::sleep_for(duration); });
    }
    static void write(HostStream& stream, DeviceSpan<double> place, double value) {
      stream.launch([place, value] { *place.device_pointer() = value; });
    }
  };
  static HostBackendOptions options(std::size_t devices, double link_gbps) {
    HostBackendOptions options;
    options.devices = devices;
    options.link = {link_gbps * 1e9, link_gbps * 1e9, 10e-6};
    return options;
  }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The steady state of training 7 layers on two devices: seconds an iteration.
template <class B, class T>
double iteration_seconds(double link_gbps, std::size_t micro_batches, double* busy) {
  constexpr std::size_t devices = 2;
  constexpr int warm_up = 2;
  constexpr int measured = 5;
  B backend{Bench<B>::options(devices, link_gbps)};
  TimedOptions const timed{1_MiB, 64_KiB, std::chrono::microseconds(500)};
  PipelineOptions options;
  options.micro_batches = micro_batches;
  Pipeline pipeline{timed_model<typename Bench<B>::Busy>(timed, 6),
                    Sgd{},
                    backend,
                    options,
                    RoundRobinSchedule{},
                    T{},
                    LayerEventProtocol(1)};
  Batch const batch(micro_batches, {1, 1});
  std::vector<double> times;
  auto start = Clock::now();
  for (int i = 0; i < warm_up + measured; ++i) {
    auto const loss = pipeline.forward_backward(batch);
    pipeline.step();
    if (loss != static_cast<double>(micro_batches)) {  // one from each
      return 0;
    }
    if (i >= warm_up) {
      times.push_back(seconds_since(start));
    }
    start = Clock::now();
  }
  auto const shares = pipeline.report().device_busy;
  *busy = 0;
  for (auto const share : shares) {
    *busy += share / static_cast<double>(shares.size());
  }
  return median(times);
}

/// Exposed: the share of an iteration in which a device does not compute.
template <class B, class T>
void iteration(benchmark::State& state) {
  auto const link_gbps = static_cast<double>(state.range(0)) / 1000;
  auto const micro_batches = static_cast<std::size_t>(state.range(1));
  double busy = 0;
  std::vector<double> times;
  for (auto _ : state) {
    auto const seconds = iteration_seconds<B, T>(link_gbps, micro_batches, &busy);
    if (seconds == 0) {
      state.SkipWithError("the loss is wrong");
      return;
    }
    state.SetIterationTime(seconds);
    times.push_back(seconds);
  }
  state.counters["exposed"] = 1 - busy;
  state.counters["micro_batches_per_s"] = static_cast<double>(micro_batches) / median(times);
}

/// A small upload on the activation lane while parameters go up on theirs, in copies of
/// \p piece_bytes, each waiting until the one before is over as windows make it.
template <class B>
double small_copy_seconds(Bytes parameter_bytes, Bytes piece_bytes) {
  B backend{Bench<B>::options(1, 1)};
  DeviceId const device(0);
  auto const on_device = backend.allocate_device(device, parameter_bytes + 64_KiB);
  auto const on_host = backend.allocate_host(parameter_bytes + 64_KiB);
  auto parameters = backend.make_stream(device, LaneKind::parameter_up);
  auto activations = backend.make_stream(device, LaneKind::activation_up);
  auto window = backend.make_event(device);
  auto start = backend.make_event(device);
  auto end = backend.make_event(device);
  auto const copy = [&](auto& stream, Bytes offset, Bytes bytes) {
    stream.copy(on_device.bytes().subspan(offset, bytes),
                HostSpan<std::byte const>(on_host.bytes().subspan(offset, bytes)));
  };
  for (Bytes offset = 0; offset < parameter_bytes; offset += piece_bytes) {
    copy(parameters, offset, std::min(piece_bytes, parameter_bytes - offset));
    if (offset == 0) {
      parameters.record(window);
    }
  }
  if (piece_bytes < parameter_bytes) {
    activations.wait(window);  // it becomes due while the second piece is under way
  }
  activations.record(start);
  copy(activations, parameter_bytes, 64_KiB);
  activations.record(end);
  end.wait();
  return end.seconds_since(start);
}

template <class B>
void small_copy(benchmark::State& state) {
  constexpr Bytes parameter_bytes = 32_MiB;
  auto const pieces = static_cast<Bytes>(state.range(0));  // 0: no parameters at all
  for (auto _ : state) {
    state.SetIterationTime(
        pieces == 0 ? small_copy_seconds<B>(0, 1)
                    : small_copy_seconds<B>(parameter_bytes, parameter_bytes / pieces));
  }
}

constexpr int fast = 20000;  // MB/s: transfers hide
constexpr int slow = 60;     // transfers are the limit

BENCHMARK(iteration<HostBackend, PriorityTransferEngine>)
    ->Name("overlap/planned")
    ->ArgNames({"link_MBps", "micro_batches"})
    ->ArgsProduct({{fast, slow, slow / 2}, {2, 4, 8}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(iteration<HostBackend, UnplannedTransfers>)
    ->Name("overlap/unplanned")
    ->ArgNames({"link_MBps", "micro_batches"})
    ->ArgsProduct({{fast, slow, slow / 2}, {2, 4, 8}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(small_copy<HostBackend>)
    ->Name("overlap/small_copy")
    ->ArgName("pieces")
    ->Arg(0)
    ->Arg(1)
    ->Arg(16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
