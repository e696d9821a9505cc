// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/layer_context.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>

namespace layer_context_test {

namespace {

using roundpipe::BackwardContext;
using roundpipe::DeviceBytes;
using roundpipe::DeviceSpan;
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::ForwardContext;
using roundpipe::LayerCall;
using roundpipe::LayerTables;
using roundpipe::LayerTensors;
using roundpipe::TensorView;
using roundpipe::test::error_of;

struct Stream {
  int work = 0;
};

/// Tensors that differ in their address.
struct Memory {
  alignas(256) std::array<std::byte, 4096> bytes{};
  double loss = 0;

  [[nodiscard]] DeviceTensor tensor(std::size_t offset) {
    return {DeviceBytes{bytes.data() + offset, 4}, {1}, DType::f32};
  }
  [[nodiscard]] std::size_t place(DeviceTensor const& tensor) const {
    return static_cast<std::size_t>(tensor.device_pointer() - bytes.data());
  }
};

}  // namespace

TEST_CASE("a forward receives its stream, call facts and tensors") {
  Memory memory;
  Stream stream;
  LayerCall const call{.shape = {2, 3},
                       .random = {.seed = 1, .layer = 4},
                       .gradient_scale = 0.25,
                       .saving = true,
                       .evaluating = false};
  LayerTensors tensors;
  tensors.parameters = {memory.tensor(0), memory.tensor(4)};
  tensors.inputs = {memory.tensor(8)};
  tensors.side_inputs = {memory.tensor(12)};
  tensors.outputs = {memory.tensor(16)};
  tensors.saved = {memory.bytes.data() + 1024, 512};
  tensors.workspace = {memory.bytes.data() + 2048, 1024};
  tensors.loss = {&memory.loss, 1};
  ForwardContext<Stream> const ctx(stream, call, tensors);

  ++ctx.stream().work;
  CHECK(stream.work == 1);
  CHECK(ctx.shape() == roundpipe::BatchShape{2, 3});
  CHECK(ctx.random().layer == 4);
  CHECK(ctx.gradient_scale() == 0.25);
  CHECK(ctx.saving());
  CHECK_FALSE(ctx.evaluating());
  CHECK(memory.place(ctx.parameter(1)) == 4);
  CHECK(memory.place(ctx.input(0)) == 8);
  CHECK(memory.place(ctx.side_input(0)) == 12);
  CHECK(memory.place(ctx.output(0)) == 16);
  CHECK(ctx.loss().device_pointer() == &memory.loss);
  CHECK_FALSE(ctx.wants_results());
}

TEST_CASE("saved memory and workspace are carved from the beginning in each call") {
  Memory memory;
  Stream stream;
  LayerCall const call;
  LayerTensors tensors;
  tensors.saved = {memory.bytes.data() + 1024, 512};
  tensors.workspace = {memory.bytes.data() + 2048, 1024};
  ForwardContext<Stream> const forward(stream, call, tensors);
  BackwardContext<Stream> const backward(stream, call, tensors);
  auto carver = forward.saved();
  CHECK(memory.place(carver.take({1}, DType::f32)) == 1024);
  CHECK(memory.place(carver.take({1}, DType::f32)) == 1280);
  CHECK(memory.place(backward.saved().take({1}, DType::f32)) == 1024);
  CHECK(memory.place(backward.workspace().take({1}, DType::f32)) == 2048);
}

TEST_CASE("an evaluation asks for results") {
  Memory memory;
  Stream stream;
  LayerCall const call{.shape = {}, .random = {}, .evaluating = true};
  LayerTensors tensors;
  tensors.results = {memory.tensor(20)};
  ForwardContext<Stream> const ctx(stream, call, tensors);
  CHECK(ctx.evaluating());
  CHECK_FALSE(ctx.saving());
  CHECK(ctx.wants_results());
  CHECK(memory.place(ctx.result(0)) == 20);
}

TEST_CASE("a backward receives gradients, and can tell which of them are not wanted") {
  Memory memory;
  Stream stream;
  LayerCall const call;
  LayerTensors tensors;
  tensors.output_gradients = {memory.tensor(4)};
  tensors.input_gradients = {DeviceTensor{}, memory.tensor(8)};
  tensors.parameter_gradients = {memory.tensor(12)};
  BackwardContext<Stream> const ctx(stream, call, tensors);
  CHECK(memory.place(ctx.output_gradient(0)) == 4);
  CHECK_FALSE(ctx.input_gradient(0).present());
  CHECK(memory.place(ctx.input_gradient(1)) == 8);
  CHECK(memory.place(ctx.parameter_gradient(0)) == 12);
}

namespace {

/// What layer 3, "squash", is called with: one tensor a list, but two parameters, of which the
/// second is frozen.
struct Named {
  Memory memory;
  Stream stream;
  LayerCall call{.shape = {}, .random = {.layer = 3}};
  LayerTables tables{"squash",
                     {{{"gain", {1}, DType::f32}}, {{"shift", {1}, DType::f32}}},
                     {{"x", {1}, DType::f32}},
                     {{"y", {1}, DType::f32}},
                     {{"tokens", {1}, DType::f32}},
                     {{"guesses", {1}, DType::f32}}};
  LayerTensors tensors;
  ForwardContext<Stream> forward{stream, call, tensors};
  BackwardContext<Stream> backward{stream, call, tensors};

  Named() {
    tensors.tables = &tables;
    tensors.parameters = {memory.tensor(0), memory.tensor(4)};
    tensors.inputs = {memory.tensor(8)};
    tensors.side_inputs = {memory.tensor(12)};
    tensors.outputs = {memory.tensor(16)};
    tensors.results = {memory.tensor(20)};
    tensors.output_gradients = {memory.tensor(24)};
    tensors.input_gradients = {memory.tensor(28)};
    tensors.parameter_gradients = {memory.tensor(32), DeviceTensor{}};
  }
  [[nodiscard]] std::ptrdiff_t place(TensorView<float const> view) const {
    return reinterpret_cast<std::byte const*>(view.data()) - memory.bytes.data();
  }
};

}  // namespace

TEST_CASE("tensors are found by name, and viewed as their element type") {
  Named c;
  CHECK(c.place(c.forward.parameter<float>("shift")) == 4);
  CHECK(c.place(c.forward.input<float>("x")) == 8);
  CHECK(c.place(c.forward.side_input<float>(std::string("tokens"))) == 12);
  CHECK(c.place(c.forward.output<float>(0)) == 16);
  CHECK(c.place(c.forward.result<float>("guesses")) == 20);
  CHECK(c.place(c.backward.output_gradient<float>("y")) == 24);
  CHECK(c.place(c.backward.input_gradient<float>("x")) == 28);
  CHECK(c.place(c.backward.parameter_gradient<float>("gain")) == 32);
  CHECK(c.memory.place(c.backward.parameter_gradient("gain")) == 32);
  CHECK(c.backward.parameter_gradient<float>("shift").empty());  // frozen

  // What a pass only reads is constant.
  static_assert(std::is_same_v<decltype(c.forward.input<float>(0)), TensorView<float const>>);
  static_assert(std::is_same_v<decltype(c.forward.output<float>(0)), TensorView<float>>);
  static_assert(std::is_same_v<decltype(c.forward.input(0)), DeviceTensor const&>);
}

TEST_CASE("a tensor that is not there is refused with the layer's name") {
  Named c;
  auto const message = [](auto&& ask) {
    auto const error = error_of(ask);
    CHECK(error.code() == Errc::invalid_argument);
    return error.message();
  };
  CHECK(message([&] { (void)c.backward.input_gradient(1); }) ==
        "layer 3 (squash) asks for input_gradient(1), but this call has 1 input gradient");
  CHECK(message([&] { (void)c.forward.parameter<float>(2); }) ==
        "layer 3 (squash) asks for parameter(2), but this call has 2 parameters");
  CHECK(message([&] { (void)c.forward.parameter("gian"); }) ==
        "layer 3 (squash) asks for parameter(\"gian\"), but its table has {gain, shift}");
  CHECK(message([&] { (void)c.forward.side_input<float>("labels"); }) ==
        "layer 3 (squash) asks for side_input(\"labels\"), but its table has {tokens}");
  CHECK(message([&] { (void)c.forward.parameter<roundpipe::BFloat16>("shift"); }) ==
        "layer 3 (squash) asks for parameter 1 'shift' as bf16, but it is f32");
  c.tensors.results.clear();
  CHECK(message([&] { (void)c.forward.result("guesses"); }) ==
        "layer 3 (squash) asks for result(0), but this call has 0 results");
  c.tensors.tables = nullptr;
  CHECK(message([&] { (void)c.forward.input<double>(0); }) ==
        "layer 3 asks for input 0 as f64, but it is f32");
  CHECK(message([&] { (void)c.forward.input("x"); }) ==
        "layer 3 is called without LayerTensors::tables, so input(\"x\") cannot be found by name");
}

}  // namespace layer_context_test
