// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Trainings of several ranks, and what one process with all their rounds makes of them.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/any_optimizer.hpp>
#include <support/pipeline_runs.hpp>
#include <support/posted_calls.hpp>
#include <support/toy_model.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// One training of several ranks.
struct RankMix {
  std::size_t ranks = 2;
  std::size_t micro_batches_per_round = 1;
  std::size_t rounds = 1;
  std::size_t calls = 1;
  std::size_t steps = 3;
  int staleness = 1;
  std::size_t master_copies = 2;
  std::size_t gradient_buffers = 1;
  DType dtype = DType::f32;
  bool declared_state = false;
  bool scales = false;
  bool starts_with_all = false;
  bool clips = false;
  bool adam = false;
  bool drops = false;
  bool tied = false;
  bool dense_tied = false;
  bool frozen = false;
  bool varied = false;
  bool watched = false;
  bool ahead = false;  ///< Whether a call is posted before the loss of the one before is taken.
  bool delays = false;
  bool shards = true;
  bool shares = false;     ///< Whether ranks keep unequal parts.
  bool deals = false;      ///< Whether ranks have unequal numbers of rounds.
  std::int64_t width = 5;  ///< Of dense layers; ranks share wide matrices.
  std::size_t layers = 3;
  std::uint64_t seed = 0;
};

/// Any training; `draw(name, first, last)` draws a number.
template <class Draw>
RankMix any_rank_mix(Draw const& draw) {
  auto const flag = [&](char const* name) { return draw(name, 0, 1) == 1; };
  RankMix mix;
  mix.ranks = draw("ranks", 2, 4);
  mix.micro_batches_per_round = draw("micro-batches", 1, 3);
  mix.rounds = draw("rounds", 1, 3);
  mix.calls = draw("calls", 1, 2);
  mix.staleness = static_cast<int>(draw("staleness", 0, 1));
  mix.master_copies = draw("master copies", 1, 2);
  mix.gradient_buffers = draw("gradient buffers", 1, 2);
  mix.dtype = std::array{DType::f32, DType::bf16, DType::f16}[draw("type", 0, 2)];
  mix.declared_state = mix.dtype != DType::f16 && flag("declared state") &&
                       (mix.master_copies == 2 || mix.staleness == 0);
  mix.scales = mix.dtype == DType::f16 || flag("scales");
  mix.starts_with_all = flag("starts with all");
  mix.clips = flag("clips");
  mix.adam = flag("adam");
  mix.drops = flag("drops");
  mix.tied = flag("tied");
  mix.dense_tied = flag("dense tied");
  mix.frozen = flag("frozen");
  mix.varied = flag("varied");
  mix.watched = flag("watched");
  mix.ahead = flag("posts ahead");
  mix.delays = flag("delays");
  mix.layers = draw("layers", 1, 6);
  mix.seed = draw("seed", 0, 999);
  mix.shards = draw("shards", 0, 3) > 0;
  mix.shares = flag("shares");
  mix.deals = flag("deals");
  if (draw("wide", 0, 3) == 0) {  // matrices of several norm blocks
    mix.width = 96;
    mix.layers = 1 + mix.layers % 2;
  }
  return mix;
}

inline auto rank_model(RankMix const& mix) {
  ToyModelOptions options;
  options.types = {mix.width, mix.dtype, mix.dtype};
  options.dense = mix.layers;
  options.drops = mix.drops;
  options.tied = mix.tied;
  options.dense_tied = mix.dense_tied;
  options.frozen_input = mix.frozen && mix.seed % 2 == 0;
  options.frozen_dense = mix.frozen ? mix.layers / 2 : 0;
  return toy_model(options);
}
using RankPipeline = Pipeline<decltype(rank_model(RankMix{})), AnyOptimizer, HostBackend>;

/// What all ranks have in common.
inline PipelineOptions rank_options(RankMix const& mix) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = mix.micro_batches_per_round;
  options.rounds = mix.rounds;
  options.ranks = mix.ranks;
  options.shard_states = mix.shards;
  auto const unequal = [&](std::uint32_t purpose) {
    std::vector<double> numbers;
    for (std::size_t r = 0; r < mix.ranks; ++r) {
      numbers.push_back(1 + random_word({mix.seed, purpose, 0, 0, 6}, r) % 5);
    }
    return numbers;
  };
  if (mix.shares) {
    options.rank_shares = unequal(0);
  }
  if (mix.deals) {
    options.rank_speeds = unequal(1);
  }
  options.calls_per_step = mix.calls;
  options.clip_norm = mix.clips ? 0.5 : 0;
  options.seed = mix.seed;
  options.state_type = mix.declared_state ? StateType::declared : StateType::fp32;
  options.step_start = mix.starts_with_all ? StepStart::all_blocks : StepStart::each_block;
  options.optimizer_threads = 1;
  if (mix.scales) {
    options.loss_scale =
        LossScaleOptions{.initial = 0x1p24, .backoff = 1.0 / 64, .growth_interval = 2};
  }
  return options;
}

/// What may differ between ranks: devices, checkpoints, whether rounds overlap, threads.
inline PipelineOptions rank_options(RankMix const& mix, std::size_t rank) {
  auto options = rank_options(mix);
  auto const words = random_block({mix.seed, static_cast<std::uint32_t>(rank), 0, 0, 5}, 0);
  options.devices = 1 + words[0] % 3;
  options.checkpoints = words[1] % 2 == 0 ? Checkpoints::layers : Checkpoints::stages;
  options.overlaps_rounds = mix.rounds > 1 && words[2] % 2 == 0;
  options.optimizer_threads = 1 + words[3] % 2;
  return options;
}

inline Policies rank_policies(RankMix const& mix, AnyProcessGroup group) {
  return {.protocol = LayerEventProtocol({.staleness = mix.staleness,
                                          .master_copies = mix.master_copies,
                                          .gradient_buffers = mix.gradient_buffers}),
          .group = std::move(group)};
}

/// The observable results of a training.
struct RankOutcome {
  std::vector<double> losses;
  std::vector<std::uint64_t> digests;
  std::uint64_t skipped = 0;

  friend bool operator==(RankOutcome const&, RankOutcome const&) = default;
};

template <class Trainer>
RankOutcome outcome_of(RankMix const& mix, Trainer& trainer, std::size_t rank) {
  RankOutcome outcome;
  PostedCalls calls(trainer, mix.ahead);
  std::uint32_t call = 0;
  for (std::size_t step = 0; step < mix.steps; ++step) {
    for (std::size_t c = 0; c < mix.calls; ++c, ++call) {
      std::vector<BatchShape> shapes(mix.micro_batches_per_round * mix.rounds * mix.ranks, {2, 3});
      for (std::size_t m = 0; mix.varied && m < shapes.size(); ++m) {
        auto const words = random_block({mix.seed, call, 0, 0, 77}, m);
        shapes[m] = {1 + words[0] % 2, 1 + words[1] % 3};
      }
      ToyData const data(shapes, mix.seed + 1000 * call);
      calls.run(data.batch());
    }
    trainer.step();
    if (mix.watched) {
      outcome.digests.push_back(weights_digest(trainer));
    }
    if (step == 0 && rank == 1) {  // an evaluation is one rank's own
      ToyData const data(2, {2, 3}, 99);
      (void)trainer.evaluate(data.batch());
    }
  }
  outcome.losses = calls.losses();
  trainer.synchronize();
  outcome.digests.push_back(weights_digest(trainer));
  outcome.skipped = trainer.state().position.skipped_steps;
  return outcome;
}

/// What the oracle makes of \p mix.
inline RankOutcome serial_outcome(RankMix const& mix) {
  SerialTrainer serial{
      rank_model(mix), AnyOptimizer(mix.adam), serial_options(rank_options(mix), mix.staleness)};
  return outcome_of(mix, serial, 0);
}

/// What the rank of \p group makes of it.
inline RankOutcome rank_outcome(RankMix const& mix, AnyProcessGroup const& group) {
  auto const options = rank_options(mix, group.rank());
  HostBackend backend(host_devices(options.devices));
  RankPipeline pipeline(
      rank_model(mix), AnyOptimizer(mix.adam), backend, options, rank_policies(mix, group));
  return outcome_of(mix, pipeline, group.rank());
}

}  // namespace roundpipe::test
