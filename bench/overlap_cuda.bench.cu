// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How much transfer time stays exposed beside compute on GPUs? The bench varies the micro-batches
// of a round and the bytes of a layer, and compares planned windows with unplanned copies; on up to
// two devices.
//
// Compute is a kernel that spins, 0.5 ms for a layer's forward, so transfers have all of the link
// and of the memory. Each layer is a stage, as if no more fitted: it goes up for its forward and
// again for its backward. `frozen`: nothing updates the layers; parameters go up and activations
// both ways. `trained`: gradients come down too, and the optimizer takes its time on the host.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_stream.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "support/overlap.hpp"
#include "support/timed_layer.hpp"

namespace {

__device__ unsigned long long nanoseconds_now() {
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(unsigned long long nanoseconds) {
  auto const start = nanoseconds_now();
  while (nanoseconds_now() - start < nanoseconds) {
  }
}

__global__ void store(double* place, double value) {
  *place = value;
}

}  // namespace

namespace roundpipe::bench {

/// Every layer is a stage of its own.
class OneLayerStages {
 public:
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    Partition partition;
    for (std::size_t i = 0; i < problem.costs.size(); ++i) {
      if (i + 1 < problem.costs.size()) {
        partition.forward.push_back({i, 1});
      }
      partition.backward.insert(partition.backward.begin(), {i, 1});
    }
    return partition;
  }
};

/// Positive loads are MiB of a trained layer, negative ones of a frozen one.
template <>
struct Bench<cu::CudaBackend> {
  struct Busy {
    static void spend(cu::CudaStream& stream, std::chrono::microseconds duration) {
      spin<<<1, 1, 0, stream.get()>>>(1000ULL * static_cast<unsigned long long>(duration.count()));
      cu::check(cudaGetLastError(), "spin");
    }
    static void write(cu::CudaStream& stream, DeviceSpan<double> place, double value) {
      store<<<1, 1, 0, stream.get()>>>(place.device_pointer(), value);
      cu::check(cudaGetLastError(), "store");
    }
  };
  using Stages = OneLayerStages;
  static constexpr char const* load_name = "layer_MiB";
  static std::size_t devices() { return std::min<std::size_t>(cu::device_count(), 2); }
  static cu::CudaBackendOptions options(std::size_t devices, std::int64_t /*load*/) {
    cu::CudaBackendOptions options;
    options.devices = cu::first_devices(devices);
    return options;
  }
  static TimedOptions timed(std::int64_t load) {
    auto const mebibytes = static_cast<Bytes>(load < 0 ? -load : load);
    return {mebibytes * 1_MiB, 4_MiB, std::chrono::microseconds(500), load > 0};
  }
};

}  // namespace roundpipe::bench

namespace {

using namespace roundpipe;
using namespace roundpipe::bench;

void frozen(benchmark::internal::Benchmark* bench) {
  over_loads<cu::CudaBackend>(bench->Iterations(1), {-16, -64, -128});
}
void trained(benchmark::internal::Benchmark* bench) {
  over_loads<cu::CudaBackend>(bench->Iterations(1), {16, 64});
}

BENCHMARK(iteration<cu::CudaBackend, PriorityTransferEngine>)
    ->Name("overlap_cuda/frozen/planned")
    ->Apply(frozen);
BENCHMARK(iteration<cu::CudaBackend, UnplannedTransfers>)
    ->Name("overlap_cuda/frozen/unplanned")
    ->Apply(frozen);
BENCHMARK(iteration<cu::CudaBackend, PriorityTransferEngine>)
    ->Name("overlap_cuda/trained/planned")
    ->Apply(trained);
BENCHMARK(iteration<cu::CudaBackend, UnplannedTransfers>)
    ->Name("overlap_cuda/trained/unplanned")
    ->Apply(trained);

}  // namespace
