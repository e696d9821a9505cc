// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/layer_context.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <stdexcept>

namespace layer_context_test {

namespace {

using roundpipe::BackwardContext;
using roundpipe::DeviceBytes;
using roundpipe::DeviceSpan;
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::ForwardContext;
using roundpipe::LayerCall;
using roundpipe::LayerTensors;

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
  CHECK_THROWS_AS((void)ctx.parameter(2), std::out_of_range);
  CHECK_THROWS_AS((void)ctx.result(0), std::out_of_range);
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

}  // namespace layer_context_test
