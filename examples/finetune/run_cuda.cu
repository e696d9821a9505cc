// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <common/gpu_network.hpp>
#include <common/matmul_peak.cuh>
#include <common/rank_devices.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>

#include <cstddef>
#include <exception>

#include "run_cuda.hpp"
#include "training.hpp"

namespace finetune {

std::size_t cuda_devices() noexcept {
  try {
    return rp::cu::device_count();
  } catch (std::exception const&) {
    return 0;
  }
}

rp::Timeline run_cuda(Options const& o, Job& job, Outcome& outcome) {
  auto const devices = examples::rank_devices(o.devices, o.local_rank, o.local_ranks);
  examples::GpuNetwork const network(o.network, o.group, devices.front());
  auto ranked = o;
  ranked.group = network.group();
  rp::cu::CudaBackend backend(rp::cu::CudaBackendOptions{
      .devices = devices,
      .device_memory_bytes = o.device_memory,
  });
  auto const peak = o.peak_tflops > 0
                        ? 1e12 * o.peak_tflops
                        : examples::matmul_peak(backend, job.model.transformer.storage);
  return run_pipeline<rp::cu::CudaOps>(backend, ranked, job, peak, outcome);
}

}  // namespace finetune
