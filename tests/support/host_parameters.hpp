// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host's parameters of a small model, with the work of the host lanes on them.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/actions/gradient_accumulator.hpp>
#include <roundpipe/runtime/actions/parameter_copier.hpp>
#include <roundpipe/runtime/actions/parameter_updater.hpp>
#include <roundpipe/runtime/state/first_values.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/system/worker_pool.hpp>
#include <support/toy_model.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::test {

/// Parameters of a model that may be tied, with SGD of rate 1.
struct HostParameters {
  struct Setup {
    ParameterCopies copies{};
    UpdaterOptions updater{.seed = 1};
    DType type = DType::f32;
    bool tied = false;
  };

  explicit HostParameters(Setup const& setup)
      : blocks(form_blocks(
            describe(
                toy_model({.types = {.parameter = setup.type}, .dense = 1, .tied = setup.tied}),
                {1, 1}),
            false,
            setup.copies.state_type)),
        memory(blocks, setup.copies, LandingRings(blocks), arena.taker()),
        progress(blocks),
        updater(
            memory, progress, Sgd{LearningRate::constant(1)}, arena.taker(), setup.updater, pool),
        accumulator(memory, setup.updater.seed, 1, {}),
        copier(memory, progress, setup.updater.finishes_steps, 1, {}) {
    set_first_values(memory, setup.updater.seed, pool);
  }

  /// Lets gradients land for \p use in \p iteration, all elements \p value.
  void land(BlockUseId use, float value, std::uint64_t iteration = 1) {
    auto const& table = blocks.block_of(use).master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      std::vector<float> const values(table[t].shape.size(), value);
      narrow(values,
             table[t].dtype,
             memory.landing(use, RoundId(0), iteration).subspan(table.offset(t), table[t].bytes()));
    }
  }
  void land_all(float value, std::uint64_t iteration = 1) {
    for (std::size_t use = 0; use < blocks.uses.size(); ++use) {
      land(BlockUseId(use), value, iteration);
    }
  }
  void measure_all(std::uint64_t step) {
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      updater.measure_gradient(BlockId(b), step);
    }
  }
  /// The newest weights.
  std::vector<float> weights(BlockId block, std::size_t tensor) {
    std::vector<float> result;
    memory.with_weights(
        block, tensor, progress.finished_steps(), [&](HostSpan<float const> values) {
          result.assign(values.begin(), values.end());
        });
    return result;
  }
  /// The first element of a master copy of bf16.
  float master(std::uint64_t version) {
    return *reinterpret_cast<BFloat16 const*>(memory.master(BlockId(0), version).data());
  }

  HostBackend backend{HostBackendOptions{}};
  HostArena<HostBackend> arena{backend};
  ParameterBlocks blocks;
  ParameterMemory memory;
  StepProgress progress;
  WorkerPool pool{1};
  ParameterUpdater<Sgd> updater;
  GradientAccumulator accumulator;
  ParameterCopier copier;
};

}  // namespace roundpipe::test
