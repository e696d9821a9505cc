// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <common/gpu_network.hpp>
#include <common/rank_devices.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "run_cuda.hpp"
#include "training.hpp"

namespace train_text {

namespace {

std::vector<rp::DeviceId> devices_of(Options const& o) {
  std::optional<std::size_t> const wanted = o.wanted_devices;
  return examples::rank_devices(wanted, o.local_rank, o.local_ranks);
}

}  // namespace

std::int64_t cuda_devices(Options const& o) {
  return static_cast<std::int64_t>(devices_of(o).size());
}

rp::Timeline run_cuda(Options& o, Text const& text, Outcome& outcome) {
  auto const devices = devices_of(o);
  examples::GpuNetwork const network(o.network, o.group, devices.front());
  auto ranked = o;
  ranked.group = network.group();
  rp::cu::CudaBackend backend(rp::cu::CudaBackendOptions{
      .devices = devices,
      .device_memory_bytes = o.device_memory,
  });
  auto timeline = run_pipeline<rp::cu::CudaOps>(backend, ranked, text, outcome);
  ranked.group = o.group;
  o = ranked;  // with the cut that was chosen
  return timeline;
}

}  // namespace train_text
