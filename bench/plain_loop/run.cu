// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <plain_loop/plain_training.hpp>
#include <plain_loop/run.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/runtime/probe/warm_up.hpp>
#include <throughput/find_peak.cuh>
#include <throughput/random_batches.hpp>

#include <cmath>

namespace plain_loop {

Outcome run(Options const& o, rp::nn::TransformerConfig const& config) {
  namespace cu = rp::cu;
  rp::DeviceId const device(0);
  cu::CudaBackend backend(cu::CudaBackendOptions{.devices = cu::first_devices(1)});
  Outcome outcome;
  outcome.device = backend.device_properties(device).name;
  outcome.peak = throughput::find_peak(backend, o, config.storage);

  rp::BatchShape const shape{o.rows, o.context};
  auto const model = rp::nn::transformer<cu::CudaOps>(config);
  rp::warm_up(model, backend, rp::describe(model, shape), 1);  // as a pipeline does
  PlainTraining training(model, backend, shape, o.micro_batches(), {o.copies, o.optimizer});
  outcome.parameters = training.parameter_count();
  throughput::RandomBatches const batches(o.micro_batches(), shape, config.vocabulary);
  for (std::size_t i = 0; i < o.warmup + o.steps; ++i) {
    training.iterate(batches[i]);
  }
  outcome.loss = training.finish();
  if (!std::isfinite(outcome.loss)) {
    throw rp::Error(rp::Errc::not_finite, "the loss is not finite");
  }
  for (std::size_t i = 0; i < o.steps; ++i) {
    outcome.iterations_s.push_back(training.seconds(o.warmup + 1 + i));
  }
  outcome.device_bytes = cu::held_bytes(backend.ordinal(device));
  return outcome;
}

}  // namespace plain_loop
