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

__global__ void bend(float* y, float const* x, float const* w) {  // One block for each row.
  int const i = blockIdx.x * columns + threadIdx.x;
  y[i] = x[i] + w[threadIdx.x] * tanhf(x[i]);
}

// One thread for each column: it sums over rows in a fixed order, so every run has the same bits.
__global__ void bend_back(
    float* dx, float* dw, float const* dy, float const* x, float const* w, int size) {
  int const column = threadIdx.x;
  for (int i = column; i < size; i += columns) {
    float const t = tanhf(x[i]);
    dw[column] += dy[i] * t;  // Add: the gradient sums over micro-batches.
    if (dx != nullptr) {
      dx[i] = dy[i] * (1 + w[column] * (1 - t * t));  // Overwrite.
    }
  }
}

// One block computes the loss and, if dx is not null, its gradient.
__global__ void half_square(
    double* loss, float* dx, float const* x, float const* y, double scale, int size) {
  double sum = 0;
  for (int i = threadIdx.x; i < size; i += columns) {
    double const difference = x[i] - y[i];
    sum += scale / 2 * difference * difference;
    if (dx != nullptr) {
      dx[i] = static_cast<float>(scale * difference);
    }
  }
  __shared__ cub::BlockReduce<double, columns>::TempStorage memory;
  double const total = cub::BlockReduce<double, columns>(memory).Sum(sum);
  if (threadIdx.x == 0 && loss != nullptr) {
    *loss = total;
  }
}

float* data(DeviceTensor const& tensor) {
  return tensor.as<float>().device_pointer();
}
int size_of(auto& ctx) {
  return static_cast<int>(ctx.shape().rows) * columns;
}

struct Bend {
  bool first = false;  // The first layer reads x from the batch.
  ParameterTable parameters() const { return {{{"w", {columns}}, Initial::normal(0.1F)}}; }
  TensorTable boundary(BatchShape s) const { return {{"x", {s.rows, columns}}}; }
  TensorTable input(BatchShape s) const { return first ? TensorTable{} : boundary(s); }
  TensorTable side_inputs(BatchShape s) const { return first ? boundary(s) : TensorTable{}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(auto& ctx) const {  // Launches on the context's stream and does not wait.
    auto const x = data(first ? ctx.side_input(0) : ctx.input(0)), w = data(ctx.parameter(0));
    auto const y = data(ctx.output(0));
    bend<<<size_of(ctx) / columns, columns, 0, ctx.stream().get()>>>(y, x, w);
    cu::check(cudaGetLastError(), "bend");
  }
  void backward(auto& ctx) const {
    auto const x = data(first ? ctx.side_input(0) : ctx.input(0)), w = data(ctx.parameter(0));
    auto const dx = first ? nullptr : data(ctx.input_gradient(0));
    auto const dw = data(ctx.parameter_gradient(0)), dy = data(ctx.output_gradient(0));
    bend_back<<<1, columns, 0, ctx.stream().get()>>>(dx, dw, dy, x, w, size_of(ctx));
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
  void forward(auto& ctx) const { launch(ctx, ctx.loss().device_pointer(), nullptr); }
  void backward(auto& ctx) const { launch(ctx, nullptr, data(ctx.input_gradient(0))); }
  void launch(auto& ctx, double* loss, float* dx) const {
    auto const x = data(ctx.input(0)), y = data(ctx.side_input(0));
    half_square<<<1, columns, 0, ctx.stream().get()>>>(
        loss, dx, x, y, ctx.gradient_scale(), size_of(ctx));
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
    auto const batch = Batch(4, {64}).set<float>("x", x).set<float>("y", y);
    std::printf("step %2d: loss %.6f\n", step, pipeline.forward_backward(batch));
    pipeline.step();  // The host updates while the next iteration runs.
  }
} catch (Error const& error) {
  std::printf("%s\n", error.what());
  return error.code() == std::errc::no_such_device ? 77 : 1;  // 77 tells CTest: skipped
}
