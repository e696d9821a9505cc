// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A layer with its own kernel, in one file: y = x + w tanh(x), with one trained w for each column.
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>

#include <cub/block/block_reduce.cuh>

#include <cmath>
#include <cstdio>
#include <system_error>
#include <vector>

using namespace roundpipe;
constexpr int columns = 256;

using In = TensorView<float const>;
using Out = TensorView<float>;

__global__ void bend(Out y, In x, In w) {  // One block for each row.
  int const i = blockIdx.x * columns + threadIdx.x;
  y[i] = x[i] + w[threadIdx.x] * tanhf(x[i]);
}

// One thread for each column: it sums over rows in a fixed order, so every run has the same bits.
__global__ void bend_back(Out dx, Out dw, In dy, In x, In w) {
  int const column = threadIdx.x;
  for (int i = column; i < x.size(); i += columns) {
    float const t = tanhf(x[i]);
    dw[column] += dy[i] * t;  // Add: the gradient sums over micro-batches.
    if (!dx.empty()) {
      dx[i] = dy[i] * (1 + w[column] * (1 - t * t));  // Overwrite.
    }
  }
}

// One block computes the loss, its gradient, or both: what is not empty.
__global__ void half_square(TensorView<double> loss, Out dx, In x, In y, double scale) {
  double sum = 0;
  for (int i = threadIdx.x; i < x.size(); i += columns) {
    double const difference = x[i] - y[i];
    sum += scale / 2 * difference * difference;
    if (!dx.empty()) {
      dx[i] = static_cast<float>(scale * difference);
    }
  }
  __shared__ cub::BlockReduce<double, columns>::TempStorage memory;
  double const total = cub::BlockReduce<double, columns>(memory).Sum(sum);
  if (threadIdx.x == 0 && !loss.empty()) {
    loss[0] = total;
  }
}

using Forward = ForwardContext<cu::CudaStream>;
using Backward = BackwardContext<cu::CudaStream>;

struct Bend {
  bool first = false;  // The first layer reads x from the batch.
  ParameterTable parameters() const { return {{{"w", {columns}}, Initial::normal(0.1F)}}; }
  TensorTable boundary(BatchShape s) const { return {{"x", {s.rows, columns}}}; }
  TensorTable input(BatchShape s) const { return first ? TensorTable{} : boundary(s); }
  TensorTable side_inputs(BatchShape s) const { return first ? boundary(s) : TensorTable{}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(Forward& ctx) const {  // Launches on the context's stream and does not wait.
    auto const x = first ? ctx.side_input<float>("x") : ctx.input<float>("x");
    bend<<<ctx.shape().rows, columns, 0, ctx.stream().get()>>>(
        ctx.output<float>("x"), x, ctx.parameter<float>("w"));
    cu::check(cudaGetLastError(), "bend");
  }
  void backward(Backward& ctx) const {
    auto const x = first ? ctx.side_input<float>("x") : ctx.input<float>("x");
    auto const dx = first ? Out{} : ctx.input_gradient<float>("x");
    auto const dw = ctx.parameter_gradient<float>("w");
    bend_back<<<1, columns, 0, ctx.stream().get()>>>(
        dx, dw, ctx.output_gradient<float>("x"), x, ctx.parameter<float>("w"));
    cu::check(cudaGetLastError(), "bend_back");
  }
};

struct SquaredError {
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", {s.rows, columns}}}; }
  TensorTable side_inputs(BatchShape s) const { return {{"y", {s.rows, columns}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  auto loss_terms(HostSpan<HostTensor const>, BatchShape s) const { return s.rows * columns; }
  void forward(Forward& ctx) const { launch(ctx, ctx.loss(), {}); }
  void backward(Backward& ctx) const { launch(ctx, {}, ctx.input_gradient<float>("x")); }
  void launch(LayerContext<cu::CudaStream>& ctx, TensorView<double> loss, Out dx) const {
    auto const x = ctx.input<float>("x"), y = ctx.side_input<float>("y");
    half_square<<<1, columns, 0, ctx.stream().get()>>>(loss, dx, x, y, ctx.gradient_scale());
    cu::check(cudaGetLastError(), "half_square");
  }
};

int main() try {
  std::vector<float> x(4 * 64 * columns), y(x.size());  // Four micro-batches of 64 rows.
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 3 * std::sin(0.37F * static_cast<float>(i));
    y[i] = x[i] + 2 * std::tanh(x[i]);
  }
  cu::CudaBackend backend;  // All devices of the machine.
  Pipeline pipeline{Sequential{Bend{true}, repeat(7, Bend{}), SquaredError{}},
                    Sgd({LearningRate::constant(4)}),
                    backend,
                    PipelineOptions{.capacity = {64}, .micro_batches_per_round = 4}};
  for (int step = 1; step <= 20; ++step) {
    auto const batch = Batch(4, {64}).set("x", x).set("y", y);
    std::printf("step %2d: loss %.6f\n", step, pipeline.forward_backward(batch));
    pipeline.step();  // The host updates while the next iteration runs.
  }
} catch (Error const& error) {
  std::printf("%s\n", error.what());
  return error.code() == std::errc::no_such_device ? 77 : 1;  // 77 tells CTest: skipped
}
