// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/roundpipe.hpp>

#include <cmath>
#include <cstdio>

using namespace roundpipe;

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
  void forward(ForwardContext<HostStream>& ctx) const {
    auto x = first ? ctx.side_input<float>("x") : ctx.input<float>("x");
    auto w = ctx.parameter<float>("w");
    enqueue(ctx, [=, y = ctx.output<float>(0)](int i) { y[i] = x[i] + w[0] * std::sin(x[i]); });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto x = first ? ctx.side_input<float>("x") : ctx.input<float>("x");
    auto w = ctx.parameter<float>("w"), dy = ctx.output_gradient<float>(0);
    auto dw = ctx.parameter_gradient<float>("w");
    auto dx = first ? TensorView<float>{} : ctx.input_gradient<float>("x");
    enqueue(ctx, [=](int i) {
      dw[0] += dy[i] * std::sin(x[i]);  // Add: the gradient sums over micro-batches.
      if (!dx.empty()) {
        dx[i] = dy[i] * (1 + w[0] * std::cos(x[i]));  // Overwrite.
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
  void forward(ForwardContext<HostStream>& ctx) const {
    auto x = ctx.input<float>("x"), y = ctx.side_input<float>("y");
    enqueue(ctx, [=, loss = ctx.loss(), scale = ctx.gradient_scale()](int i) {
      loss[0] = (i == 0 ? 0 : loss[0]) + scale / 2 * (x[i] - y[i]) * (x[i] - y[i]);
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto x = ctx.input<float>("x"), y = ctx.side_input<float>("y");
    auto dx = ctx.input_gradient<float>("x");
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
    auto const batch = Batch(2, {4}).set("x", x).set("y", y);
    std::printf("step %2d: loss %.4f\n", step, pipeline.forward_backward(batch));
    pipeline.step();  // The host updates while the next iteration runs.
  }
}
