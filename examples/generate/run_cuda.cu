// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>

#include <exception>

#include "run_cuda.hpp"
#include "text.hpp"

namespace generate {

namespace rp = roundpipe;

bool has_cuda() noexcept {
  try {
    return rp::cu::device_count() > 0;
  } catch (std::exception const&) {
    return false;
  }
}

std::vector<std::int32_t> run_cuda(Options const& o, Model const& model) {
  rp::cu::CudaBackend backend(rp::cu::CudaBackendOptions{
      .devices = rp::cu::first_devices(1),
      .device_memory_bytes = o.device_memory,
  });
  rp::Pipeline pipeline{
      rp::nn::transformer<rp::cu::CudaOps>(model.config.transformer),
      rp::Sgd{},
      backend,
      rp::PipelineOptions{.capacity = model.capacity, .device_memory = o.device_memory}};
  return continued(pipeline, model, o);
}

}  // namespace generate
