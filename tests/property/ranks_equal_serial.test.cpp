// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/any_optimizer.hpp>
#include <support/pipeline_runs.hpp>
#include <support/property.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ranks_equal_serial_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// One training of several ranks.
struct Mix {
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
  bool delays = false;
  std::size_t layers = 3;
  std::uint64_t seed = 0;
};

Mix any_mix() {
  Mix mix;
  mix.ranks = any_number("ranks", 2, 4);
  mix.micro_batches_per_round = any_number("micro-batches", 1, 3);
  mix.rounds = any_number("rounds", 1, 3);
  mix.calls = any_number("calls", 1, 2);
  mix.staleness = static_cast<int>(any_number("staleness", 0, 1));
  mix.master_copies = any_number("master copies", 1, 2);
  mix.gradient_buffers = any_number("gradient buffers", 1, 2);
  mix.dtype = std::array{DType::f32, DType::bf16, DType::f16}[any_number("type", 0, 2)];
  mix.declared_state = mix.dtype != DType::f16 && any_flag("declared state") &&
                       (mix.master_copies == 2 || mix.staleness == 0);
  mix.scales = mix.dtype == DType::f16 || any_flag("scales");
  mix.starts_with_all = any_flag("starts with all");
  mix.clips = any_flag("clips");
  mix.adam = any_flag("adam");
  mix.drops = any_flag("drops");
  mix.tied = any_flag("tied");
  mix.dense_tied = any_flag("dense tied");
  mix.frozen = any_flag("frozen");
  mix.varied = any_flag("varied");
  mix.watched = any_flag("watched");
  mix.delays = any_flag("delays");
  mix.layers = any_number("layers", 1, 6);
  mix.seed = any_number("seed", 0, 999);
  return mix;
}

auto model_of(Mix const& mix) {
  ToyModelOptions options;
  options.types = {5, mix.dtype, mix.dtype};
  options.dense = mix.layers;
  options.drops = mix.drops;
  options.tied = mix.tied;
  options.dense_tied = mix.dense_tied;
  options.frozen_input = mix.frozen && mix.seed % 2 == 0;
  options.frozen_dense = mix.frozen ? mix.layers / 2 : 0;
  return toy_model(options);
}
using Model = decltype(model_of(Mix{}));
using RankPipeline = Pipeline<Model, AnyOptimizer, HostBackend>;

PipelineOptions options_of(Mix const& mix) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = mix.micro_batches_per_round;
  options.rounds = mix.rounds;
  options.ranks = mix.ranks;
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
PipelineOptions options_of(Mix const& mix, std::size_t rank) {
  auto options = options_of(mix);
  auto const words = random_block({mix.seed, static_cast<std::uint32_t>(rank), 0, 0, 5}, 0);
  options.devices = 1 + words[0] % 3;
  options.checkpoints = words[1] % 2 == 0 ? Checkpoints::layers : Checkpoints::stages;
  options.overlaps_rounds = mix.rounds > 1 && words[2] % 2 == 0;
  options.optimizer_threads = 1 + words[3] % 2;
  return options;
}

Policies policies_of(Mix const& mix, LoopbackGroup& group) {
  return {.protocol = LayerEventProtocol({.staleness = mix.staleness,
                                          .master_copies = mix.master_copies,
                                          .gradient_buffers = mix.gradient_buffers}),
          .group = group};
}

/// The observable results of a training.
struct Outcome {
  std::vector<double> losses;
  std::vector<std::uint64_t> digests;
  std::uint64_t skipped = 0;

  friend bool operator==(Outcome const&, Outcome const&) = default;
};

template <class Trainer>
Outcome outcome_of(Mix const& mix, Trainer& trainer, std::size_t rank) {
  Outcome outcome;
  std::uint32_t call = 0;
  for (std::size_t step = 0; step < mix.steps; ++step) {
    for (std::size_t c = 0; c < mix.calls; ++c, ++call) {
      std::vector<BatchShape> shapes(mix.micro_batches_per_round * mix.rounds * mix.ranks, {2, 3});
      for (std::size_t m = 0; mix.varied && m < shapes.size(); ++m) {
        auto const words = random_block({mix.seed, call, 0, 0, 77}, m);
        shapes[m] = {1 + words[0] % 2, 1 + words[1] % 3};
      }
      ToyData const data(shapes, mix.seed + 1000 * call);
      outcome.losses.push_back(trainer.forward_backward(data.batch()));
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
  trainer.synchronize();
  outcome.digests.push_back(weights_digest(trainer));
  outcome.skipped = trainer.state().position.skipped_steps;
  return outcome;
}

/// Calls \p f with each rank's group, each on a thread of its own, and returns what that throws. A
/// rank that throws ends the group.
std::vector<std::string> on_ranks(LoopbackNetwork& network,
                                  std::function<void(LoopbackGroup&)> const& f) {
  std::vector<std::string> errors(network.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < network.size(); ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      try {
        f(group);
      } catch (std::exception const& error) {
        errors[r] = error.what();
        group.abort(error.what());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return errors;
}

/// The property: every rank trains as one process with the rounds of all ranks.
void check_equal(Mix const& mix) {
  SerialTrainer serial{
      model_of(mix), AnyOptimizer(mix.adam), serial_options(options_of(mix), mix.staleness)};
  auto const expected = outcome_of(mix, serial, 0);

  LoopbackNetwork network(
      mix.ranks,
      {.seed = mix.seed, .longest_delay = std::chrono::microseconds(mix.delays ? 400 : 0)});
  std::vector<Outcome> outcomes(mix.ranks);
  auto const errors = on_ranks(network, [&](LoopbackGroup& group) {
    auto const rank = group.rank();
    auto const options = options_of(mix, rank);
    HostBackend backend(host_devices(options.devices));
    RankPipeline pipeline(
        model_of(mix), AnyOptimizer(mix.adam), backend, options, policies_of(mix, group));
    outcomes[rank] = outcome_of(mix, pipeline, rank);
  });
  for (std::size_t r = 0; r < mix.ranks; ++r) {
    RC_ASSERT(errors[r] == "");
    RC_ASSERT(outcomes[r].losses == expected.losses);
    RC_ASSERT(outcomes[r].digests == expected.digests);
    RC_ASSERT(outcomes[r].skipped == expected.skipped);
  }
  RC_TAG(mix.ranks, mix.staleness == 0 ? "sync" : "staleness 1", mix.rounds > 1);
}

}  // namespace

TEST_CASE("ranks train as one process with all their rounds does, bit for bit") {
  auto params = rc::detail::configuration().testParams;
  auto const* const cases = std::getenv("ROUNDPIPE_TEST_CASES");
  params.maxSuccess = cases == nullptr ? 60 : std::atoi(cases);
  check_property([] { check_equal(any_mix()); }, params);
}

TEST_CASE("a rank that fails ends the training of all, and names itself and the cause") {
  Mix const mix{.ranks = 3, .steps = 6};
  LoopbackNetwork network(3, {.fault = LoopbackFault{.rank = 1, .operation = 9}});
  auto const errors = on_ranks(network, [&](LoopbackGroup& group) {
    HostBackend backend(host_devices(1 + group.rank()));
    RankPipeline pipeline(
        model_of(mix), AnyOptimizer(true), backend, options_of(mix), policies_of(mix, group));
    try {
      (void)outcome_of(mix, pipeline, 0);
    } catch (Error const&) {
      try {
        pipeline.recover();
      } catch (Error const& error) {
        CHECK(error.code() == Errc::aborted);  // no rank can go on alone
        CHECK(error.message().find("rank 1 has ended the group: reduce gradient") == 0);
      }
      throw;
    }
  });
  CHECK(errors[1].find("reduce gradient") == 0);
  CHECK(errors[1].find("operation 9 of rank 1 fails") != std::string::npos);
  for (auto const r : {0, 2}) {
    CHECK(errors[static_cast<std::size_t>(r)].find("rank 1 has ended the group") !=
          std::string::npos);
  }
}

TEST_CASE("ranks that would not train the same say what differs before they begin") {
  LoopbackNetwork network(2);
  auto const errors = on_ranks(network, [&](LoopbackGroup& group) {
    Mix const mix{.seed = group.rank()};
    HostBackend backend(host_devices(1));
    RankPipeline const pipeline(
        model_of(mix), AnyOptimizer(true), backend, options_of(mix), policies_of(mix, group));
  });
  for (auto const& error : errors) {
    CHECK(error.find("seed is 1 on rank 1 and 0 on rank 0") != std::string::npos);
  }
}

TEST_CASE("a batch is that of all ranks") {
  Mix const mix{.micro_batches_per_round = 2, .rounds = 3};
  LoopbackNetwork network(2);
  auto const errors = on_ranks(network, [&](LoopbackGroup& group) {
    HostBackend backend(host_devices(1));
    RankPipeline pipeline(
        model_of(mix), AnyOptimizer(true), backend, options_of(mix), policies_of(mix, group));
    ToyData const data(6, {2, 3}, 1);
    (void)pipeline.forward_backward(data.batch());
  });
  for (auto const& error : errors) {
    CHECK(error.find("the batch has 6 micro-batches; the pipeline runs 12 a call") == 0);
  }
}

}  // namespace ranks_equal_serial_test
