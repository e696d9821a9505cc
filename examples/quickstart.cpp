// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/roundpipe.hpp>

#include <cmath>
#include <cstdio>

using namespace roundpipe;

auto const data = [](DeviceTensor const& tensor) { return tensor.as<float>().device_pointer(); };

void enqueue(auto& ctx, auto kernel) {  // The device calls the kernel for each row, later.
  ctx.stream().launch([kernel, rows = ctx.shape().rows] {
    for (int row = 0; row < rows; ++row) {
      kernel(row);
    }
  });
}

struct Wave {  // A layer of your own, y = x + w sin(x): tables of its tensors and two functions.
  bool first = false;  // The first layer reads x from the batch.
  ParameterTable parameters() const { return {{{"w", {1}}, Initial::normal(0.1F)}}; }
  TensorTable boundary(BatchShape s) const { return {{"x", {s.rows}}}; }
  TensorTable input(BatchShape s) const { return first ? TensorTable{} : boundary(s); }
  TensorTable side_inputs(BatchShape s) const { return first ? boundary(s) : TensorTable{}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(auto& ctx) const {
    auto x = data(first ? ctx.side_input(0) : ctx.input(0)), w = data(ctx.parameter(0));
    auto y = data(ctx.output(0));
    enqueue(ctx, [=](int i) { y[i] = x[i] + *w * std::sin(x[i]); });
  }
  void backward(auto& ctx) const {
    auto x = data(first ? ctx.side_input(0) : ctx.input(0)), w = data(ctx.parameter(0));
    auto dy = data(ctx.output_gradient(0)), dw = data(ctx.parameter_gradient(0));
    auto dx = first ? nullptr : data(ctx.input_gradient(0));
    enqueue(ctx, [=](int i) {
      *dw += dy[i] * std::sin(x[i]);  // Add: the gradient sums over micro-batches.
      if (dx != nullptr) {
        dx[i] = dy[i] * (1 + *w * std::cos(x[i]));  // Overwrite.
      }
    });
  }
};

struct SquaredError {  // The last layer computes the loss: half the mean of (x - y)^2.
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", {s.rows}}}; }
  TensorTable side_inputs(BatchShape s) const { return {{"y", {s.rows}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  auto loss_terms(HostSpan<HostTensor const>, BatchShape s) const { return s.rows; }
  void forward(auto& ctx) const {
    auto x = data(ctx.input(0)), y = data(ctx.side_input(0));
    enqueue(ctx, [=, loss = ctx.loss().device_pointer(), scale = ctx.gradient_scale()](int i) {
      *loss = (i == 0 ? 0 : *loss) + scale / 2 * (x[i] - y[i]) * (x[i] - y[i]);
    });
  }
  void backward(auto& ctx) const {
    auto x = data(ctx.input(0)), y = data(ctx.side_input(0)), dx = data(ctx.input_gradient(0));
    auto scale = static_cast<float>(ctx.gradient_scale());
    enqueue(ctx, [=](int i) { dx[i] = scale * (x[i] - y[i]); });
  }
};

int main() {
  float const x[] = {-4, -3, -2, -1, 1, 2, 3, 4}, y[] = {-3, -4, -4, -2, 2, 4, 4, 3};
  HostBackendOptions machine;
  machine.devices = 3;
  HostBackend backend(machine);
  Pipeline pipeline{Sequential{Wave{true}, repeat(7, Wave{}), SquaredError{}},
                    Sgd({LearningRate::constant(0.03)}),
                    backend,
                    PipelineOptions{.capacity = {4}, .micro_batches_per_round = 2}};
  for (int step = 1; step <= 10; ++step) {
    auto const batch = Batch(2, {4}).set<float>("x", x).set<float>("y", y);
    std::printf("step %2d: loss %.4f\n", step, pipeline.forward_backward(batch));
    pipeline.step();  // The host updates while the next iteration runs.
  }
}
