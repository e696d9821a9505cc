// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Skip connections in trainers: over stages, devices and checkpoints.

#include <roundpipe/model/skip.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace pipeline_skips_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Stages of \c size layers, the first of which may have fewer.
struct StagesOf {
  std::size_t size = 1;

  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    Partition partition;
    std::size_t end = problem.costs.size();
    while (end > 0) {
      auto const first = end - std::min(end, size);
      if (end < problem.costs.size()) {
        partition.forward.insert(partition.forward.begin(), {first, end - first});
      }
      partition.backward.push_back({first, end - first});
      end = first;
    }
    return partition;
  }
};

/// Hands on what it takes, and counts the copies of the carried tensor and of its gradient.
struct Passer {
  ToyTypes types{};
  std::shared_ptr<std::atomic<int>> copies = std::make_shared<std::atomic<int>>(0);

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return ToyJoin{types}.input(shape); }
  TensorTable boundary(BatchShape shape) const { return input(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  Carries carries() const { return {.tensors = 1, .gradients = 1}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    if (ctx.wants_output()) {
      ctx.stream().copy(ctx.output(0), ctx.input(0));
      hand_on(ctx.stream(), ctx.output(1), ctx.input(1));
    }
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().copy(ctx.input_gradient(0), ctx.output_gradient(0));
    hand_on(ctx.stream(), ctx.input_gradient(1), ctx.output_gradient(1));
  }

 private:
  void hand_on(HostStream& stream, DeviceTensor const& to, DeviceTensor const& from) const {
    if (to.device_pointer() != from.device_pointer()) {
      ++*copies;
      stream.copy(to, from);
    }
  }
};

PipelineOptions small_options(Checkpoints checkpoints) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 3;
  options.seed = 7;
  options.checkpoints = checkpoints;
  return options;
}

}  // namespace

TEST_CASE("a pipeline carries tensors past layers as the serial oracle does, bit for bit") {
  ToyData const data(3, {2, 3}, 11);
  AdamW const adam({.rate = LearningRate::constant(0.01)});
  for (auto const type : {DType::f32, DType::bf16}) {
    auto const model = toy_skips({.width = 3, .parameter = type, .boundary = type}, 1, 2);
    for (int const staleness : {0, 1}) {
      auto const expected =
          train_serially(model, adam, small_options({}), staleness, data.batch(), 3);
      for (std::size_t devices = 1; devices <= 4; ++devices) {
        for (std::size_t const layers : {1, 2, 3, 5}) {
          for (auto const checkpoints : {Checkpoints::stages, Checkpoints::layers}) {
            CAPTURE(name_of(type));
            CAPTURE(staleness);
            CAPTURE(devices);
            CAPTURE(layers);
            CAPTURE((checkpoints == Checkpoints::layers));
            HostBackend backend(host_devices(devices));
            Pipeline pipeline{model,
                              adam,
                              backend,
                              small_options(checkpoints),
                              Policies{.protocol = LayerEventProtocol({.staleness = staleness}),
                                       .partitioner = StagesOf{layers}}};
            CHECK(train(pipeline, data.batch(), 3) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE(
    "carried tensors and their gradients are copied where they enter and leave a stage alone") {
  Passer const passer{};
  Sequential const model{ToyInput{}, fork(ToyDense{}), repeat(6, passer), ToyJoin{}, ToyLoss{}};
  ToyData const data(3, {2, 3}, 11);
  auto const copies = [&](std::size_t layers, Checkpoints checkpoints) {
    HostBackend backend(host_devices(1));
    Pipeline pipeline{model,
                      Sgd(),
                      backend,
                      small_options(checkpoints),
                      Policies{.partitioner = StagesOf{layers}}};
    passer.copies->store(0);
    pipeline.forward_backward(data.batch());
    pipeline.step();
    pipeline.synchronize();
    return passer.copies->load();
  };
  CHECK(copies(10, Checkpoints::stages) == 0);
  // Of a micro-batch: layer 4 at the end of the forward stage, layer 5 at both borders of the fused
  // stage, and the gradient in layer 4 at the beginning of the backward stage.
  CHECK(copies(5, Checkpoints::stages) == 3 * 4);
  // In the forward stage each layer hands a checkpoint to the host.
  CHECK(copies(5, Checkpoints::layers) == 3 * 6);
}

TEST_CASE("the gradients of a model with skip connections equal finite differences") {
  auto const model = toy_skips({.width = 3}, 1, 2);
  SerialOptions const options{.capacity = {1, 2}, .micro_batches_per_round = 1};
  SerialTrainer stepped{model, Sgd({.rate = LearningRate::constant(1)}), options};
  SerialTrainer probe{model, Sgd(), options};
  ToyData const data(1, {1, 2}, 5);
  stepped.forward_backward(data.batch());
  auto const facts = describe(model, {1, 2});
  std::vector<std::vector<float>> before;
  for (std::size_t layer = 0; layer < facts.size(); ++layer) {
    for (std::size_t p = 0; p < facts.layers[layer].parameters.size(); ++p) {
      before.emplace_back(facts.layers[layer].parameters[p].tensor.shape.size());
      stepped.read_parameter(LayerId(layer), p, before.back());
    }
  }
  stepped.step();
  std::size_t next = 0;
  for (std::size_t layer = 0; layer < facts.size(); ++layer) {
    for (std::size_t p = 0; p < facts.layers[layer].parameters.size(); ++p) {
      auto const& old = before[next++];
      std::vector<float> after(old.size());
      stepped.read_parameter(LayerId(layer), p, after);
      for (std::size_t i = 0; i < old.size(); ++i) {
        auto const loss_at = [&](float difference) {
          auto moved = old;
          moved[i] += difference;
          probe.write_parameter(LayerId(layer), p, moved);
          return probe.evaluate(data.batch()).loss;
        };
        auto const slope = (loss_at(0.01F) - loss_at(-0.01F)) / 0.02;
        loss_at(0);
        CAPTURE(facts.name_of(layer));
        CAPTURE(i);
        auto const gradient = static_cast<double>(old[i] - after[i]);
        CHECK(gradient == doctest::Approx(slope).epsilon(0.01).scale(0.2));
      }
    }
  }
}

}  // namespace pipeline_skips_test
