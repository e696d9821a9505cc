// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/probe/layer_probe.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace layer_probe_test {

using namespace roundpipe;
using namespace roundpipe::test;
using detail::LayerProbeTensors;

TEST_CASE("a probe has every tensor of its layer, but no gradients of frozen parameters") {
  auto types = ToyTypes{.parameter = DType::bf16, .boundary = DType::bf16, .frozen = 2};
  Sequential const model{ToyInput{types}, ToyDense{types}, ToyLoss{types}};
  auto const description = describe(model, BatchShape{2, 5});
  auto const& facts = description.layers[1];
  auto const bytes = LayerProbeTensors(facts).bytes();
  HostBackend backend;
  auto const slab = backend.allocate_device(DeviceId(0), bytes);
  LayerProbeTensors const trial(facts, TensorCarver(slab.bytes()));
  CHECK(trial.bytes() == bytes);
  auto const& tensors = trial.tensors();
  REQUIRE(tensors.parameters.size() == 2);
  CHECK(tensors.parameter_gradients[0].dtype() == DType::f32);
  CHECK(tensors.parameter_gradients[0].present());
  CHECK_FALSE(tensors.parameter_gradients[1].present());
  CHECK(tensors.inputs[0].size() == 40);
  CHECK(tensors.output_gradients[0].dtype() == DType::bf16);
  CHECK(tensors.saved.size() == facts.footprint.saved_bytes);
}

TEST_CASE("integers of a boundary have no gradients") {
  ToyTypes const types;
  Sequential const model{ToyInput{types}, ToyTwoOut{types}, ToyTwoIn{types}, ToyLoss{types}};
  auto const description = describe(model, BatchShape{2, 5});
  HostBackend backend;
  for (std::size_t const layer : {1, 2}) {
    auto const& facts = description.layers[layer];
    auto const slab = backend.allocate_device(DeviceId(0), LayerProbeTensors(facts).bytes());
    LayerProbeTensors const trial(facts, TensorCarver(slab.bytes()));
    auto const& gradients =
        layer == 1 ? trial.tensors().output_gradients : trial.tensors().input_gradients;
    REQUIRE(gradients.size() == 3);
    CHECK(gradients[0].present());
    CHECK_FALSE(gradients[1].present());
    CHECK(gradients[2].present());
  }
}

namespace {

/// Takes 2 ms without a saved level, and 20 with the first one.
struct SlowDense : ToyDense {
  void forward(ForwardContext<HostStream>& ctx) const {
    ToyDense::forward(ctx);
    ctx.stream().launch([ms = ctx.found_level() == 0 ? 2 : 20] {
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    });
  }
};

}  // namespace

TEST_CASE("each replay has its own time") {
  ToyTypes const types;
  Sequential const model{ToyInput{types}, SlowDense{types}, ToyLoss{types}};
  auto const description = describe(model, BatchShape{2, 5});
  HostBackend backend;
  using Probe = detail::LayerProbe<decltype(model), HostBackend>;
  auto const slab = backend.allocate_device(DeviceId(0), Probe::bytes_of(description.layers[1]));
  detail::RandomOperands<HostBackend> operands(backend);
  Probe probe(model, backend, DeviceId(0), description, LayerId(1), operands, slab.bytes());
  auto const seconds = probe.replays(2);
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0] >= 0.002);
  CHECK(seconds[0] < 0.02);
  CHECK(seconds[1] >= 0.02);
}

TEST_CASE("a layer reads parameters as they start, inputs of 1 and small gradients") {
  Sequential const model{ToyInput{}, ToyDense{}, ToyLoss{}};
  auto const description = describe(model, BatchShape{2, 5});
  auto const& facts = description.layers[1];
  HostBackend backend;
  auto const slab = backend.allocate_device(DeviceId(0), LayerProbeTensors(facts).bytes());
  LayerProbeTensors const probe(facts, TensorCarver(slab.bytes()));
  std::vector<float> deviations;
  probe.for_each_operand([&](DeviceTensor const& tensor, Initial like) {
    CHECK(tensor.present());
    deviations.push_back(like.deviation);
  });
  CHECK(deviations == std::vector{0.5F, 0.1F, 1.0F, 0.03F});  // weight, bias, input, gradient
}

TEST_CASE("results exist only in an evaluation") {
  auto const types = ToyTypes{};
  Sequential const model{ToyInput{types}, ToyDense{types}, ToyLoss{types}};
  auto const description = describe(model, BatchShape{2, 5});
  auto const& facts = description.layers.back();
  REQUIRE(facts.results.size() > 0);
  HostBackend backend;
  auto const slab = backend.allocate_device(DeviceId(0), LayerProbeTensors(facts).bytes());
  LayerProbeTensors const trial(facts, TensorCarver(slab.bytes()));
  CHECK(trial.tensors().results.empty());
  auto const results = trial.evaluation_tensors().results;
  REQUIRE(results.size() == facts.results.size());
  CHECK(results[0].present());
}

}  // namespace layer_probe_test
