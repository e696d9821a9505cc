// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief A trainer with its own loop, data, weight buffers and compute functions, and the same
/// trainer on three (emulated) devices that hold no state of it. Both end with equal weights, bit
/// for bit; otherwise the program fails.

#include <roundpipe/roundpipe.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

namespace {

using Floats = std::vector<float>;

// The trainer's own parts: a multi-layer perceptron, its compute functions, its data. Arrays are
// dense and row-major. Sums form in double, where a product of two floats is exact: a compiler flag
// that fuses products with sums does not change a bit.

constexpr std::int64_t widths[] = {4, 16, 16, 16, 16, 1};  // of the input, then of each layer
constexpr std::size_t layers = std::size(widths) - 1;
constexpr std::int64_t rows = 32;  // in a batch
constexpr std::size_t batches = 10;
constexpr std::size_t steps = 200;
constexpr float rate = 0x1p-3F;  // exact too: a power of two

double product(float a, float b) {
  return double{a} * double{b};
}

/// y = tanh(x w), where x is [n, in], w [in, out] and y [n, out].
void dense(
    std::int64_t n, std::int64_t in, std::int64_t out, float const* x, float const* w, float* y) {
  for (std::int64_t r = 0; r < n; ++r) {
    for (std::int64_t j = 0; j < out; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < in; ++i) {
        sum += product(x[r * in + i], w[i * out + j]);
      }
      y[r * out + j] = static_cast<float>(std::tanh(sum));
    }
  }
}

/// Adds the gradient of w to dw, row after row. Writes the gradient of x to dx unless dx is null.
void dense_gradient(std::int64_t n,
                    std::int64_t in,
                    std::int64_t out,
                    float const* x,
                    float const* w,
                    float const* y,
                    float const* dy,
                    float* dx,
                    float* dw) {
  Floats dz(static_cast<std::size_t>(out));
  for (std::int64_t r = 0; r < n; ++r) {
    for (std::int64_t j = 0; j < out; ++j) {
      auto const k = r * out + j;
      dz[j] = static_cast<float>(dy[k] * (1 - product(y[k], y[k])));
    }
    for (std::int64_t i = 0; i < in; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < out; ++j) {
        auto& g = dw[i * out + j];
        g = static_cast<float>(g + product(x[r * in + i], dz[j]));
        sum += product(dz[j], w[i * out + j]);
      }
      if (dx != nullptr) {
        dx[r * in + i] = static_cast<float>(sum);
      }
    }
  }
}

/// scale times half the squared distance between y and target.
double squared_error(std::int64_t n, float const* y, float const* target, double scale) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += product(y[i] - target[i], y[i] - target[i]) / 2;
  }
  return scale * sum;
}

void squared_error_gradient(
    std::int64_t n, float const* y, float const* target, double scale, float* dy) {
  for (std::int64_t i = 0; i < n; ++i) {
    dy[i] = static_cast<float>(scale * (y[i] - target[i]));
  }
}

struct Data {
  std::vector<Floats> x;  // one array a batch: [rows, widths[0]]
  std::vector<Floats> y;  // one array a batch: [rows, 1]
};

// The trainer as it was. Four places will change.
namespace before {

double train(Data const& data, std::vector<Floats>& weights) {
  // 1. Memory.
  std::vector<Floats> gradients = weights;
  std::vector<Floats> h;   // the input of each layer; then the output of the last
  std::vector<Floats> dh;  // their gradients
  for (auto const width : widths) {
    dh.push_back(h.emplace_back(rows * width));
  }
  double loss = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    // 2. The batch.
    h[0] = data.x[step % batches];
    auto const* const y = data.y[step % batches].data();
    // 3. Forward and backward.
    for (std::size_t l = 0; l < layers; ++l) {
      dense(rows, widths[l], widths[l + 1], h[l].data(), weights[l].data(), h[l + 1].data());
    }
    loss = squared_error(rows, h[layers].data(), y, 1.0 / rows);
    squared_error_gradient(rows, h[layers].data(), y, 1.0 / rows, dh[layers].data());
    for (std::size_t l = layers; l-- > 0;) {
      std::fill(gradients[l].begin(), gradients[l].end(), 0.0F);
      dense_gradient(rows,
                     widths[l],
                     widths[l + 1],
                     h[l].data(),
                     weights[l].data(),
                     h[l + 1].data(),
                     dh[l + 1].data(),
                     l == 0 ? nullptr : dh[l].data(),
                     gradients[l].data());
    }
    // 4. The update.
    for (std::size_t l = 0; l < layers; ++l) {
      for (std::size_t i = 0; i < weights[l].size(); ++i) {
        weights[l][i] -= rate * gradients[l][i];
      }
    }
  }
  return loss;
}

}  // namespace before

// The same trainer on devices. Two layers are new: they describe their tensors and enqueue the
// compute functions above.
namespace after {

using namespace roundpipe;

struct Dense {
  std::int64_t in = 1;
  std::int64_t out = 1;
  bool first = false;  // then x comes from the batch, otherwise from the layer before

  ParameterTable parameters() const { return {{{"w", {in, out}}, Initial::zeros()}}; }
  TensorTable x(BatchShape batch) const { return {{"x", {batch.rows, in}}}; }
  TensorTable y(BatchShape batch) const { return {{"y", {batch.rows, out}}}; }
  TensorTable input(BatchShape batch) const { return first ? TensorTable{} : x(batch); }
  TensorTable side_inputs(BatchShape batch) const { return first ? x(batch) : TensorTable{}; }
  TensorTable boundary(BatchShape batch) const { return y(batch); }
  Footprint footprint(BatchShape batch) const { return {y(batch).bytes(), 0}; }

  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([layer = *this,
                         n = ctx.shape().rows,
                         x = first ? ctx.side_input<float>("x") : ctx.input<float>("x"),
                         w = ctx.parameter<float>("w"),
                         y = ctx.output<float>("y"),
                         kept = ctx.saving() ? kept_y(ctx) : TensorView<float>{}] {
      dense(n, layer.in, layer.out, x.data(), w.data(), y.data());
      if (!kept.empty()) {
        std::copy(y.begin(), y.end(), kept.begin());
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([layer = *this,
                         n = ctx.shape().rows,
                         x = first ? ctx.side_input<float>("x") : ctx.input<float>("x"),
                         w = ctx.parameter<float>("w"),
                         y = kept_y(ctx),
                         dy = ctx.output_gradient<float>("y"),
                         dx = first ? TensorView<float>{} : ctx.input_gradient<float>("x"),
                         dw = ctx.parameter_gradient<float>("w")] {
      dense_gradient(
          n, layer.in, layer.out, x.data(), w.data(), y.data(), dy.data(), dx.data(), dw.data());
    });
  }

 private:
  // The backward finds no outputs, so the forward saves a copy for it.
  TensorView<float> kept_y(LayerContext<HostStream>& ctx) const {
    return ctx.saved().take<float>({ctx.shape().rows, out});
  }
};

struct SquaredError {
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape batch) const { return {{"prediction", {batch.rows, 1}}}; }
  TensorTable side_inputs(BatchShape batch) const { return {{"y", {batch.rows, 1}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  std::int64_t loss_terms(HostSpan<HostTensor const>, BatchShape batch) const { return batch.rows; }

  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch(
        [n = ctx.shape().rows,
         y = ctx.input<float>("prediction"),
         target = ctx.side_input<float>("y"),
         scale = ctx.gradient_scale(),
         loss = ctx.loss()] { loss[0] = squared_error(n, y.data(), target.data(), scale); });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([n = ctx.shape().rows,
                         y = ctx.input<float>("prediction"),
                         target = ctx.side_input<float>("y"),
                         scale = ctx.gradient_scale(),
                         dy = ctx.input_gradient<float>("prediction")] {
      squared_error_gradient(n, y.data(), target.data(), scale, dy.data());
    });
  }
};

double train(Data const& data, std::vector<Floats>& weights) {
  // 1. Memory: the devices', and the pipeline's copy of the weights.
  HostBackendOptions machine;
  machine.devices = 3;
  HostBackend backend(machine);
  Pipeline pipeline{Sequential{Dense{widths[0], widths[1], true},
                               repeat(layers - 2, Dense{widths[1], widths[1]}),
                               Dense{widths[1], 1},
                               SquaredError{}},
                    Sgd({LearningRate::constant(rate)}),
                    backend,
                    PipelineOptions{.capacity = {rows / 4}, .micro_batches_per_round = 4},
                    // No call runs beside a step.
                    Policies{.protocol = LayerEventProtocol({.staleness = 0})}};
  for (std::size_t l = 0; l < layers; ++l) {
    pipeline.write_parameter(LayerId(l), 0, weights[l]);
  }
  double loss = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    // 2. The batch: four micro-batches.
    Batch batch(4, {rows / 4});
    batch.set("x", data.x[step % batches]).set("y", data.y[step % batches]);
    // 3. Forward and backward.
    loss = pipeline.forward_backward(batch);
    // 4. The update.
    pipeline.step();
  }
  for (std::size_t l = 0; l < layers; ++l) {
    pipeline.read_parameter(LayerId(l), 0, weights[l]);  // back in the trainer's buffers
  }
  return loss;
}

}  // namespace after

/// The function to learn: y = sin(x0 + x1 x2 - x3) / 2.
Data make_data() {
  std::mt19937 random(1);
  auto const draw = [&] { return static_cast<float>(random()) * 0x1p-31F - 1; };
  Data data;
  for (std::size_t b = 0; b < batches; ++b) {
    auto& x = data.x.emplace_back();
    auto& y = data.y.emplace_back();
    for (std::int64_t r = 0; r < rows; ++r) {
      float const v[] = {draw(), draw(), draw(), draw()};
      x.insert(x.end(), std::begin(v), std::end(v));
      y.push_back(std::sin(v[0] + v[1] * v[2] - v[3]) / 2);
    }
  }
  return data;
}

std::vector<Floats> make_weights() {
  std::mt19937 random(2);
  std::vector<Floats> weights;
  for (std::size_t l = 0; l < layers; ++l) {
    auto const bound = 1 / std::sqrt(static_cast<float>(widths[l]));
    for (auto& w : weights.emplace_back(widths[l] * widths[l + 1])) {
      w = bound * (static_cast<float>(random()) * 0x1p-31F - 1);
    }
  }
  return weights;
}

}  // namespace

int main() {
  auto const data = make_data();
  auto weights_before = make_weights();
  auto weights_after = make_weights();
  std::printf("before: loss %.6f\n", before::train(data, weights_before));
  std::printf("after:  loss %.6f\n", after::train(data, weights_after));
  for (std::size_t l = 0; l < layers; ++l) {
    auto const& b = weights_before[l];
    auto const& a = weights_after[l];
    if (std::memcmp(b.data(), a.data(), b.size() * sizeof(float)) != 0) {
      std::printf("the weights of layer %zu differ\n", l);
      return 1;
    }
  }
  std::printf("all weights are equal, bit for bit\n");
}
