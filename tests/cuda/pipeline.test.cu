// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <common/memory_peak.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/brief_test.hpp>
#include <support/cuda_resources.hpp>
#include <support/cuda_workers.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/posted_calls.hpp>
#include <support/resident_bytes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace roundpipe;
using test::error_of;

/// A small transformer that uses every option of the reference layers.
nn::TransformerConfig small_model() {
  return {.vocabulary = 96,
          .hidden = 64,
          .layers = 5,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 32,
          .intermediate = 160,
          .query_key_norm = true,
          .dropout = 0.1,
          .tied = true,
          .storage = DType::bf16,
          .parameter = DType::bf16,
          .loss_chunk = 48,
          .initial_deviation = 0.1};
}

/// Tokens that follow a rule which the model can learn.
std::vector<std::int32_t> tokens_of(std::size_t count, std::uint32_t seed) {
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::int32_t>((i * i / 3 + 7 * seed) % 96);
  }
  return tokens;
}

struct Run {
  std::vector<double> losses;
  std::uint64_t digest = 0;
  bool offloads = false;
  std::size_t sends = 0;  ///< Of a call.
};

struct Training {
  std::size_t workers = 1;
  int staleness = 1;
  std::size_t micro_batches_per_round = 4;
  std::size_t rounds = 1;
  bool overlaps_rounds = false;
  Checkpoints checkpoints = Checkpoints::stages;
  std::size_t save_level = 0;  ///< Of all blocks, for every second micro-batch.
  std::size_t steps = test::is_brief() ? 2 : 6;
  bool ahead = false;  ///< Posts a call before it takes the loss of the one before.
  CostSource costs = CostSource::estimated;
  bool check_finite = false;
  bool peers = false;  ///< Whether boundaries go from device to device.
  Bytes device_memory_bytes = 256_MiB;
  bool one_layer_stages = false;
  std::vector<DeviceId> devices = {};  ///< Replaces \ref workers when it is not empty.
  nn::TransformerConfig config = small_model();
};

/// By layer and micro-batch; none where nothing is kept.
std::optional<std::vector<std::vector<std::size_t>>> levels_of(Training const& t) {
  if (t.save_level == 0) {
    return std::nullopt;
  }
  std::vector<std::size_t> of_block(t.micro_batches_per_round, 0);
  for (std::size_t m = 0; m < of_block.size(); m += 2) {
    of_block[m] = t.save_level;
  }
  std::vector levels(static_cast<std::size_t>(t.config.layers) + 1, of_block);
  levels.front().clear();  // the embedding saves nothing
  return levels;
}

Policies policies_of(Training const& t) {
  Policies policies{.protocol = LayerEventProtocol{t.staleness}};
  if (t.one_layer_stages) {
    policies.partitioner = test::OneLayerStages{};
  }
  return policies;
}

/// The first devices of the machine; surplus workers share them.
std::vector<DeviceId> spread(std::size_t workers) {
  auto const present = cu::device_count();
  std::vector<DeviceId> devices;
  for (std::size_t w = 0; w < workers; ++w) {
    devices.emplace_back(w % present);
  }
  return devices;
}

/// A pipeline with its own devices and batches.
struct Trainer {
  explicit Trainer(Training const& t)
      : training(t),
        backend(cu::CudaBackendOptions{
            .devices = t.devices.empty() ? spread(t.workers) : t.devices,
            .device_memory_bytes = t.device_memory_bytes,
            .resources = test::shared_resources(),
        }),
        pipeline(nn::transformer<cu::CudaOps>(t.config),
                 AdamW{{.rate = LearningRate::constant(3e-3)}},
                 backend,
                 PipelineOptions{.capacity = shape,
                                 .micro_batches_per_round = t.micro_batches_per_round,
                                 .rounds = t.rounds,
                                 .clip_norm = 1,
                                 .seed = 3,
                                 .costs = t.costs,
                                 .checkpoints = t.checkpoints,
                                 .save_levels = levels_of(t),
                                 .overlaps_rounds = t.overlaps_rounds,
                                 .peer_boundaries = t.peers,
                                 .optimizer_threads = 2,
                                 .check_finite = t.check_finite},
                 policies_of(t)) {}

  /// One iteration of micro-batches of \p extents; \returns its loss.
  double train(std::size_t step, BatchShape extents = shape) {
    post_call(step, extents);
    return take_loss();
  }

  /// The same without the loss.
  void post_call(std::size_t step, BatchShape extents = shape) {
    auto const count = training.micro_batches_per_round * training.rounds;
    auto const tokens = tokens_of(count * static_cast<std::size_t>(extents.positions()),
                                  static_cast<std::uint32_t>(step % 3));
    auto labels = tokens;
    std::rotate(labels.begin(), labels.begin() + 1, labels.end());
    labels[5] = -100;
    Batch batch(count, extents);
    batch.set("tokens", tokens).set("labels", labels);
    pipeline.post_call(batch);
    pipeline.step();
  }
  double take_loss() { return pipeline.take_loss(); }

  static constexpr BatchShape shape{2, 32};
  Training training;
  cu::CudaBackend backend;
  Pipeline<decltype(nn::transformer<cu::CudaOps>(small_model())), AdamW, cu::CudaBackend> pipeline;
};

Run train(Training const& t) {
  Trainer trainer(t);
  test::PostedCalls calls(trainer, t.ahead);
  Run run;
  for (std::size_t step = 0; step < t.steps; ++step) {
    calls.run(step);
  }
  run.losses = calls.losses();
  run.digest = weights_digest(trainer.pipeline);
  auto const& actions = trainer.pipeline.plan().graph.actions;
  run.sends = static_cast<std::size_t>(
      std::ranges::count(actions, ActionKind::send_boundary, &Action::kind));
  run.offloads = trainer.pipeline.plan().host.rings.bytes(BufferKind::offloaded_saves) > 0;
  return run;
}

}  // namespace

// This test comes first, because other tests use device 0.
TEST_CASE("a device that is not named gets no context" * doctest::skip(!test::has_two_devices())) {
  REQUIRE_FALSE(cu::has_context(DeviceId(0)));
  Training training;
  training.devices = {DeviceId(1)};
  training.costs = CostSource::measured;
  auto const run = train(training);
  CHECK(cu::has_context(DeviceId(1)));
  CHECK_FALSE(cu::has_context(DeviceId(0)));

  // Training does not change the current device of a thread that has a context there, either.
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  CHECK(cu::has_context(DeviceId(0)));
  CHECK(train(training).digest == run.digest);
  int current = -1;
  CHECK(cudaGetDevice(&current) == cudaSuccess);
  CHECK(current == 0);
}

TEST_CASE("training on CUDA learns, and its weights do not depend on how many devices share it") {
  for (int const staleness : test::variants({0, 1})) {
    CAPTURE(staleness);
    Training training;
    training.staleness = staleness;
    auto const one = train(training);
    for (auto const loss : one.losses) {
      CHECK(std::isfinite(loss));
    }
    CHECK(one.losses.front() > 4);
    for (std::size_t const workers : test::variants<std::size_t>({2, 3, 4})) {
      CAPTURE(workers);
      training.workers = workers;
      auto const many = train(training);
      CHECK(many.losses == one.losses);
      CHECK(many.digest == one.digest);
    }
  }
}

TEST_CASE("calls that are posted ahead change no weights on CUDA") {
  for (std::size_t const workers : test::variants<std::size_t>({1, 2, 4})) {
    CAPTURE(workers);
    Training training;
    training.workers = workers;
    auto const one_by_one = train(training);
    training.ahead = true;
    auto const ahead = train(training);
    CHECK(ahead.losses == one_by_one.losses);
    CHECK(ahead.digest == one_by_one.digest);
  }
}

TEST_CASE("measured costs and rounds change times, but not weights") {
  Training training;
  training.micro_batches_per_round = 2;
  training.rounds = 2;
  training.workers = 2;
  auto const estimated = train(training);
  training.costs = CostSource::measured;
  auto const measured = train(training);
  CHECK(measured.digest == estimated.digest);
}

TEST_CASE(
    "new shapes that arrive late stop nothing, and weights still do not depend on the devices") {
  std::vector<std::uint64_t> digests;
  for (std::size_t const workers : test::variants<std::size_t>({1, 2, 4})) {
    CAPTURE(workers);
    Training training;
    training.workers = workers;
    Trainer trainer(training);
    for (std::size_t step = 0; step < 2 * training.steps; ++step) {
      BatchShape const extents{step % 4 < 2 ? 2 : 1, 32 - 3 * static_cast<std::int64_t>(step / 2)};
      CHECK(std::isfinite(trainer.train(step, extents)));
    }
    digests.push_back(weights_digest(trainer.pipeline));
    CHECK(digests.back() == digests.front());
  }
}

TEST_CASE("save levels change no weights on CUDA") {
  // Several, so that there are forward stages.
  for (std::size_t const workers : test::variants<std::size_t>({2, 4})) {
    CAPTURE(workers);
    Training training;
    training.workers = workers;
    auto const recomputed = train(training);
    CHECK_FALSE(recomputed.offloads);
    training.checkpoints = Checkpoints::layers;
    for (auto const level : test::variants<std::size_t>({0, 1, 2, 3, 4})) {
      CAPTURE(level);
      training.save_level = level;
      auto const run = train(training);
      CHECK(run.offloads == (level > 0));
      CHECK(run.digest == recomputed.digest);
      CHECK(run.losses == recomputed.losses);
    }
  }
}

TEST_CASE("boundaries that go from device to device change no weights on CUDA") {
  std::size_t sent = 0;
  // They share a device, or have one each.
  for (std::size_t const workers : test::variants<std::size_t>({2, 4})) {
    CAPTURE(workers);
    Training training;
    training.workers = workers;
    training.one_layer_stages = true;
    if (!Trainer(training).backend.device_properties(DeviceId(0)).reaches_peers) {
      MESSAGE(workers << " workers do not reach each other: nothing to test");
      continue;
    }
    for (auto const checkpoints : test::variants({Checkpoints::stages, Checkpoints::layers})) {
      training.checkpoints = checkpoints;
      training.peers = false;
      auto const through_host = train(training);
      CHECK(through_host.sends == 0);
      training.peers = true;
      auto const run = train(training);
      CHECK(run.sends > 0);
      CHECK(run.digest == through_host.digest);
      CHECK(run.losses == through_host.losses);
      sent += run.sends;
    }
  }
  MESSAGE(sent << " boundaries of a call went from device to device");
}

TEST_CASE("rounds that overlap change no weights on CUDA") {
  for (std::size_t const workers : test::variants<std::size_t>({1, 2, 4})) {
    CAPTURE(workers);
    Training training;
    training.workers = workers;
    training.rounds = 3;
    auto const one_by_one = train(training);
    training.checkpoints = Checkpoints::layers;
    training.overlaps_rounds = true;
    for (auto const level : test::variants<std::size_t>({0, 1, 2, 3, 4})) {
      CAPTURE(level);
      training.save_level = level;
      auto const run = train(training);
      CHECK(run.digest == one_by_one.digest);
      CHECK(run.losses == one_by_one.losses);
    }
  }
}

TEST_CASE(
    "a training on CUDA goes on in a pipeline with other devices, stages and budget, bit for bit") {
  for (int const staleness : test::variants({0, 1})) {
    CAPTURE(staleness);
    Training training;
    training.staleness = staleness;
    auto const whole = train(training);
    Trainer first(training);
    std::vector<double> losses;
    for (std::size_t step = 0; step < training.steps / 2; ++step) {
      losses.push_back(first.train(step));
    }
    training.workers = 3;
    training.checkpoints = Checkpoints::layers;
    training.one_layer_stages = true;
    training.device_memory_bytes = Trainer(training).pipeline.plan().stages.memory.bytes;
    Trainer second(training);
    CHECK(second.pipeline.plan().stages.partition != first.pipeline.plan().stages.partition);
    second.pipeline.restore(first.pipeline.state());
    for (std::size_t step = training.steps / 2; step < training.steps; ++step) {
      losses.push_back(second.train(step));
    }
    CHECK(losses == whole.losses);
    CHECK(weights_digest(second.pipeline) == whole.digest);
    // The first pipeline goes on as if nobody had asked for its state.
    for (std::size_t step = training.steps / 2; step < training.steps; ++step) {
      CHECK(first.train(step) == losses[step]);
    }
    CHECK(weights_digest(first.pipeline) == whole.digest);
  }
}

TEST_CASE("check_finite names the first value on CUDA that is not finite") {
  Training training;
  training.workers = 3;
  auto const unchecked = train(training);
  training.check_finite = true;
  CHECK(train(training).digest == unchecked.digest);

  Trainer trainer(training);
  (void)trainer.train(0);
  std::vector<float> const bad(64, std::numeric_limits<float>::quiet_NaN());
  trainer.pipeline.write_parameter("3.post_attention_layernorm.weight", bad);
  auto const error = error_of([&] { (void)trainer.train(1); });
  CAPTURE(error.message());
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().find("layer 3 (transformer block)") != std::string::npos);
  CHECK(error.message().find("[0] is ") != std::string::npos);
}

TEST_CASE("a small model learns a rule on CUDA") {
  Training training;
  training.steps = 60;
  training.config.dropout = 0;
  auto const run = train(training);
  CHECK(run.losses.back() < 0.7 * run.losses.front());
}

TEST_CASE("a thousand steps leave the memory of the device and the host as it was") {
  Training training;
  training.workers = 2;
  Trainer trainer(training);
  std::size_t step = 0;
  auto const train_until = [&](std::size_t end) {
    while (step < end) {
      static_cast<void>(trainer.train(step++));
    }
    trainer.pipeline.synchronize();
  };
  train_until(100);
  auto const device = cu::memory_info(DeviceId(0)).free_bytes;
  auto const host = test::resident_bytes();
  train_until(1100);
  auto const device_after = cu::memory_info(DeviceId(0)).free_bytes;
  auto const host_after = test::resident_bytes();
  MESSAGE("host: " << host << " bytes after 100 steps, " << host_after << " after 1100");
  CHECK(device_after == device);
  // The tokens and labels of a step take two KiB: a leak of these would be 2,000 KiB.
  CHECK(host_after <= host + 256_KiB);
}

TEST_CASE("evaluation on CUDA gives the loss and the last logits") {
  cu::CudaBackend backend(cu::CudaBackendOptions{
      .devices = spread(2), .device_memory_bytes = 256_MiB, .resources = test::shared_resources()});
  BatchShape const shape{2, 32};
  Pipeline pipeline{nn::transformer<cu::CudaOps>(small_model()),
                    AdamW{},
                    backend,
                    PipelineOptions{.capacity = shape, .micro_batches_per_round = 2}};
  auto const tokens = tokens_of(3 * 64, 1);
  Batch batch(3, shape);
  batch.set("tokens", tokens).set("labels", tokens);
  auto const first = pipeline.evaluate(batch);
  auto const again = pipeline.evaluate(batch);
  CHECK(std::isfinite(first.loss));
  CHECK(first.loss == again.loss);
  CHECK(first.results.size() == 3);
  CHECK(first.results == again.results);
}

TEST_CASE(
    "by the driver's count a process stays within its budget, context and libraries included") {
  // Where the products of the head are measured, whole operands would take 300 MB more than a plan.
  auto config = small_model();
  config.vocabulary = 65'536;
  config.hidden = 512;
  config.loss_chunk = 2048;
  BatchShape const shape{8, 256};
  auto const make = [&](cu::CudaBackend& backend, Bytes budget) {
    return std::make_unique<
        Pipeline<decltype(nn::transformer<cu::CudaOps>(config)), AdamW, cu::CudaBackend>>(
        nn::transformer<cu::CudaOps>(config),
        AdamW{},
        backend,
        PipelineOptions{.capacity = shape, .micro_batches_per_round = 2, .device_memory = budget});
  };
  auto const fresh = [] {  // has measured no product yet
    return cu::CudaBackend(
        cu::CudaBackendOptions{.devices = spread(1), .resources = test::make_resources()});
  };
  Bytes held = 0;
  auto const refusal = error_of([&] {
    auto backend = fresh();
    (void)make(backend, 8_GiB);  // loads the code of all layers, which later plans count
    held = backend.overhead_bytes(DeviceId(0));
    (void)make(backend, held + 1_MiB);
  });
  CHECK(refusal.code() == Errc::over_budget);
  std::string const before_number = "the smallest budget that works is ";
  auto const at = refusal.message().find(before_number);
  REQUIRE(at != std::string::npos);
  auto const least = std::stoull(refusal.message().substr(at + before_number.size()));
  CHECK(least > held);
  for (Bytes const budget : {Bytes{least}, Bytes{least} + 100_MiB}) {
    auto backend = fresh();
    examples::MemoryPeak memory({backend.ordinal(DeviceId(0))}, std::chrono::milliseconds(1));
    auto const pipeline = make(backend, budget);
    for (std::size_t step = 0; step < 3; ++step) {
      auto const tokens = tokens_of(2 * 2048, static_cast<std::uint32_t>(step));
      Batch batch(2, shape);
      batch.set("tokens", tokens).set("labels", tokens);
      pipeline->forward_backward(batch);
      pipeline->step();
    }
    pipeline->synchronize();
    auto const peak = memory.bytes().front();
    MESSAGE(peak << " bytes of a budget of " << budget << " were used, " << held
                 << " before the plan");
    CHECK(peak <= budget);
  }
}

TEST_CASE("a budget that no plan fits is refused before anything runs") {
  cu::CudaBackend backend(cu::CudaBackendOptions{
      .devices = spread(1), .device_memory_bytes = 1_MiB, .resources = test::shared_resources()});
  auto const error = error_of([&] {
    Pipeline const pipeline{nn::transformer<cu::CudaOps>(small_model()),
                            AdamW{},
                            backend,
                            PipelineOptions{.capacity = {2, 32}, .micro_batches_per_round = 2}};
  });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().find("smallest budget that works") != std::string::npos);
}
