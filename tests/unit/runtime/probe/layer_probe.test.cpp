// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/probe/layer_probe.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <thread>

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

/// Takes two milliseconds.
struct SlowDense : ToyDense {
  void forward(ForwardContext<HostStream>& ctx) const {
    ToyDense::forward(ctx);
    ctx.stream().launch([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  }
};

}  // namespace

TEST_CASE("the time of a replay is the mean of its repetitions") {
  ToyTypes const types;
  Sequential const model{ToyInput{types}, SlowDense{types}, ToyLoss{types}};
  auto const description = describe(model, BatchShape{2, 5});
  HostBackend backend;
  using Probe = detail::LayerProbe<decltype(model), HostBackend>;
  auto const slab = backend.allocate_device(DeviceId(0), Probe::bytes_of(description.layers[1]));
  detail::RandomOperands<HostBackend> operands(backend);
  Probe probe(model, backend, DeviceId(0), description, LayerId(1), operands, slab.bytes());
  auto const seconds = probe.replay(0, 40);
  CHECK(seconds >= 0.002);
  CHECK(seconds < 0.04);  // 40 of them take 80 ms and more
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

namespace {

/// What \ref detail::RandomOperands makes on a device.
class Operands {
 public:
  [[nodiscard]] std::vector<double> filled(DType type, std::int64_t count, Initial like) {
    auto const slab =
        backend_.allocate_device(DeviceId(0), static_cast<Bytes>(count) * size_of(type));
    DeviceTensor const tensor(slab.bytes(), {count}, type);
    operands_.fill(stream_, tensor, like);
    stream_.record(done_);
    done_.wait();
    std::vector<double> values(tensor.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(load(tensor, i));
    }
    return values;
  }

 private:
  HostBackend backend_;
  detail::RandomOperands<HostBackend> operands_{backend_};
  HostBackend::Stream stream_ = backend_.make_stream(DeviceId(0), LaneKind::compute);
  HostBackend::Event done_ = backend_.make_event(DeviceId(0));
};

}  // namespace

TEST_CASE("operands are numbers of their type like the initial ones, but not zeros") {
  Operands operands;
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const like : {Initial::normal(0.5F), Initial::zeros()}) {
      constexpr std::int64_t count = (1 << 17) + 1000;  // more than are drawn
      double sum = 0;
      double squares = 0;
      for (auto const x : operands.filled(type, count, like)) {
        sum += x;
        squares += x * x;
      }
      auto const deviation = like.deviation > 0 ? 0.5 : 0.03;
      CHECK(std::abs(sum / count) < 5 * deviation / std::sqrt(count / 2));
      CHECK(std::sqrt(squares / count) == doctest::Approx(deviation).epsilon(0.02));
    }
    CHECK(operands.filled(type, 3, Initial::ones()) == std::vector<double>{1, 1, 1});
  }
}

TEST_CASE("operands of one distribution are different numbers") {
  Operands operands;
  auto const a = operands.filled(DType::f32, 1 << 17, Initial::normal(1));
  auto const b = operands.filled(DType::f32, 1 << 17, Initial::normal(1));
  std::size_t equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    equal += a[i] == b[i] ? 1 : 0;
    equal += i >= 4096 && a[i] == a[i - 4096] ? 1 : 0;  // a matrix has different rows
  }
  CHECK(equal < 10);
}

}  // namespace layer_probe_test
