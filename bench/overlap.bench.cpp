// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How much transfer time stays exposed beside compute? The bench varies the micro-batches of a
// round and the link speed, and compares planned windows with unplanned copies. It also measures
// how long a small copy waits behind a large one.
//
// On the host backend compute is a sleep, so any number of devices fits two cores. Times are the
// emulation's: only the ratios within one run mean anything. overlap_cuda.bench.cu measures GPUs.

#include "support/overlap.hpp"

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "support/timed_layer.hpp"

namespace roundpipe::bench {

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
  using Stages = Partitioner;
  static constexpr char const* load_name = "link_MBps";
  static std::size_t devices() { return 2; }
  static HostBackendOptions options(std::size_t devices, std::int64_t link_megabytes) {
    auto const rate = 1e6 * static_cast<double>(link_megabytes);
    HostBackendOptions options;
    options.devices = devices;
    options.link = {rate, rate, 10e-6};
    return options;
  }
  static TimedOptions timed(std::int64_t /*link_megabytes*/) {
    return {1_MiB, 64_KiB, std::chrono::microseconds(500)};
  }
};

}  // namespace roundpipe::bench

namespace {

using namespace roundpipe;
using namespace roundpipe::bench;

/// A small upload on the activation lane while parameters go up on their own lane, in copies of \p
/// piece_bytes. As with windows, each copy waits until the one before is over.
template <class B>
double small_copy_seconds(Bytes parameter_bytes, Bytes piece_bytes) {
  B backend{Bench<B>::options(1, 1000)};
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
  auto const pieces = static_cast<Bytes>(state.range(0));  // 0: no parameters
  for (auto _ : state) {
    state.SetIterationTime(pieces == 0
                               ? small_copy_seconds<B>(0, 1)
                               : small_copy_seconds<B>(parameter_bytes, parameter_bytes / pieces));
  }
}

// MB/s: at the first, transfers hide; at the others, transfers are the limit.
void links(benchmark::internal::Benchmark* bench) {
  over_loads<HostBackend>(bench, {20000, 60, 30});
}

BENCHMARK(iteration<HostBackend, PriorityTransferEngine>)->Name("overlap/planned")->Apply(links);
BENCHMARK(iteration<HostBackend, UnplannedTransfers>)->Name("overlap/unplanned")->Apply(links);
BENCHMARK(small_copy<HostBackend>)
    ->Name("overlap/small_copy")
    ->ArgName("pieces")
    ->Arg(0)
    ->Arg(1)
    ->Arg(16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
