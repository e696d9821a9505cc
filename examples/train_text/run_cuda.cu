// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>

#include <cstddef>

#include "run_cuda.hpp"
#include "training.hpp"

namespace train_text {

std::int64_t cuda_devices(Options const& o) {
  auto const present = rp::cu::device_count();
  auto const count = o.wanted_devices ? static_cast<std::size_t>(*o.wanted_devices) : present;
  return static_cast<std::int64_t>(rp::cu::first_devices(count).size());
}

rp::Timeline run_cuda(Options& o, Text const& text, Outcome& outcome) {
  rp::cu::CudaBackend backend(rp::cu::CudaBackendOptions{
      .devices = rp::cu::first_devices(static_cast<std::size_t>(o.devices)),
      .device_memory_bytes = o.device_memory,
  });
  return run_pipeline<rp::cu::CudaOps>(backend, o, text, outcome);
}

}  // namespace train_text
