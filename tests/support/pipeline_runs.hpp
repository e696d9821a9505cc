// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Trains a model serially and through a pipeline, and digests the weights.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::test {

/// A host backend of \p devices devices, otherwise with defaults.
inline HostBackendOptions host_devices(std::size_t devices) {
  HostBackendOptions options;
  options.devices = devices;
  return options;
}

/// The serial counterpart of a pipeline with \p options.
inline SerialOptions serial_options(PipelineOptions const& options, int staleness) {
  SerialOptions serial;
  serial.capacity = options.capacity;
  serial.micro_batches_per_round = options.micro_batches_per_round;
  serial.rounds = options.rounds * options.ranks;
  serial.clip_norm = options.clip_norm;
  serial.seed = options.seed;
  serial.staleness = staleness;
  serial.state_type = options.state_type;
  serial.loss_scale = options.loss_scale;
  return serial;
}

/// Runs steps of \p calls calls each; returns the digest of the weights before the first step and
/// after each.
template <class Trainer>
std::vector<std::uint64_t> train(Trainer& trainer,
                                 Batch const& batch,
                                 std::size_t steps,
                                 std::size_t calls = 1) {
  std::vector<std::uint64_t> digests{weights_digest(trainer)};
  for (std::size_t s = 0; s < steps; ++s) {
    for (std::size_t c = 0; c < calls; ++c) {
      trainer.forward_backward(batch);
    }
    trainer.step();
    digests.push_back(weights_digest(trainer));
  }
  return digests;
}

/// The result of \ref train for the serial oracle.
template <class Model, class O>
std::vector<std::uint64_t> train_serially(Model const& model,
                                          O const& optimizer,
                                          PipelineOptions const& options,
                                          int staleness,
                                          Batch const& batch,
                                          std::size_t steps,
                                          std::size_t calls = 1) {
  SerialTrainer<Model, O, HostStream> trainer{model, optimizer, serial_options(options, staleness)};
  return train(trainer, batch, steps, calls);
}

}  // namespace roundpipe::test
