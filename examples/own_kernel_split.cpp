// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// examples/own_kernel.cu in two files. The kernels are in own_kernel_split/kernels.cu, which is
// short and for nvcc. The layers and the pipeline are here: the host's compiler compiles them
// faster, and with its warnings.
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <system_error>
#include <vector>

#include "own_kernel_split/kernels.hpp"

using namespace roundpipe;
using own_kernel::columns;

struct Bend {
  bool first = false;  // The first layer reads x from the batch.
  ParameterTable parameters() const { return {{{"w", {columns}}, Initial::normal(0.1F)}}; }
  TensorTable boundary(BatchShape s) const { return {{"x", {s.rows, columns}}}; }
  TensorTable input(BatchShape s) const { return first ? TensorTable{} : boundary(s); }
  TensorTable side_inputs(BatchShape s) const { return first ? boundary(s) : TensorTable{}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<cu::CudaStream>& ctx) const {
    own_kernel::bend(ctx.stream().get(),
                     ctx.output<float>("x"),
                     first ? ctx.side_input<float>("x") : ctx.input<float>("x"),
                     ctx.parameter<float>("w"));
  }
  void backward(BackwardContext<cu::CudaStream>& ctx) const {
    own_kernel::bend_back(ctx.stream().get(),
                          first ? own_kernel::Out{} : ctx.input_gradient<float>("x"),
                          ctx.parameter_gradient<float>("w"),
                          ctx.output_gradient<float>("x"),
                          first ? ctx.side_input<float>("x") : ctx.input<float>("x"),
                          ctx.parameter<float>("w"));
  }
};

struct SquaredError {
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", {s.rows, columns}}}; }
  TensorTable side_inputs(BatchShape s) const { return {{"y", {s.rows, columns}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  auto loss_terms(HostSpan<HostTensor const>, BatchShape s) const { return s.rows * columns; }
  void forward(ForwardContext<cu::CudaStream>& ctx) const {
    own_kernel::half_square(ctx.stream().get(),
                            ctx.loss(),
                            {},
                            ctx.input<float>("x"),
                            ctx.side_input<float>("y"),
                            ctx.gradient_scale());
  }
  void backward(BackwardContext<cu::CudaStream>& ctx) const {
    own_kernel::half_square(ctx.stream().get(),
                            {},
                            ctx.input_gradient<float>("x"),
                            ctx.input<float>("x"),
                            ctx.side_input<float>("y"),
                            ctx.gradient_scale());
  }
};

int main() try {
  std::vector<float> x(4 * 64 * static_cast<std::size_t>(columns));  // Four times 64 rows.
  std::vector<float> y(x.size());
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
