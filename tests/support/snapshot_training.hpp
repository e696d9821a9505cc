// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A small training whose snapshots tests write and read.

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/toy_model.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::test {

/// The model and the options of a \ref small_trainer.
struct SmallTraining {
  ToyModelOptions model{.types = {5, DType::bf16, DType::bf16}, .drops = true};
  SerialOptions options{
      .capacity = {2, 3}, .micro_batches_per_round = 2, .seed = 7, .staleness = 1};

  [[nodiscard]] static AdamW optimizer() {
    return AdamW({.rate = LearningRate::constant(0.01), .weight_decay = 0.1});
  }
};

inline auto small_trainer(SmallTraining const& training = {}) {
  return SerialTrainer{toy_model(training.model), training.optimizer(), training.options};
}

/// Trains steps [\p from, \p to); \returns the digest of the weights after each.
template <class Trainer>
std::vector<std::uint64_t> train_steps(Trainer& trainer, std::size_t from, std::size_t to) {
  std::vector<std::uint64_t> digests;
  for (auto step = from; step < to; ++step) {
    ToyData const data(2, {2, 3}, 100 + step);
    trainer.forward_backward(data.batch());
    trainer.step();
    digests.push_back(weights_digest(trainer));
  }
  return digests;
}

}  // namespace roundpipe::test
