// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A U-Net of two levels removes noise from signals that jump. What is lost where signals are halved
// goes past the layers below by skip connections.
#include <roundpipe/roundpipe.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

using namespace roundpipe;

namespace {

/// Channels of a signal at one level of the net: of every position, of every second, and so on.
Shape signal(BatchShape s, std::int64_t channels, std::int64_t step) {
  return {s.rows, channels, s.length / step};
}

/// Calls f(y, w, x) with the numbers of all elements of signals and weights that a convolution of
/// width 3 takes together.
void for_each_tap(Shape const& y, Shape const& x, auto f) {
  auto const outputs = y[1], inputs = x[1], length = y[2];
  for (std::int64_t row = 0; row < y[0]; ++row) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        for (std::int64_t t = 0; t < length; ++t) {
          for (std::int64_t k = std::max<std::int64_t>(0, 1 - t);
               k < std::min<std::int64_t>(3, length - t + 1);
               ++k) {
            f(static_cast<std::size_t>((row * outputs + o) * length + t),
              static_cast<std::size_t>((o * inputs + i) * 3 + k),
              static_cast<std::size_t>((row * inputs + i) * length + t + k - 1));
          }
        }
      }
    }
  }
}

/// y = tanh(w * x): a convolution of width 3. It saves y.
struct Convolution {
  std::int64_t inputs, outputs, step;
  bool first = false;  // The first layer reads x from the batch.

  ParameterTable parameters() const {
    auto const deviation = 1 / std::sqrt(3.0F * static_cast<float>(inputs));
    return {{{"w", {outputs, inputs, 3}}, Initial::normal(deviation)}};
  }
  TensorTable input(BatchShape s) const { return first ? TensorTable{} : x_of(s); }
  TensorTable side_inputs(BatchShape s) const { return first ? x_of(s) : TensorTable{}; }
  TensorTable boundary(BatchShape s) const { return {{"y", signal(s, outputs, step)}}; }
  Footprint footprint(BatchShape s) const { return {.saved_bytes = boundary(s).bytes()}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto const out = signal(ctx.shape(), outputs, step), in = signal(ctx.shape(), inputs, step);
    auto const saved = ctx.saving() ? ctx.saved().take<float>(out) : TensorView<float>{};
    auto const x = first ? ctx.side_input<float>(0) : ctx.input<float>(0);
    auto const w = ctx.parameter<float>("w");
    ctx.stream().launch([=, y = ctx.output<float>("y")] {
      std::ranges::fill(y, 0.0F);
      for_each_tap(out, in, [&](auto o, auto k, auto i) { y[o] += w[k] * x[i]; });
      std::ranges::transform(y, y.begin(), [](float z) { return std::tanh(z); });
      std::copy_n(y.begin(), saved.size(), saved.begin());
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto const out = signal(ctx.shape(), outputs, step), in = signal(ctx.shape(), inputs, step);
    auto const x = first ? ctx.side_input<float>(0) : ctx.input<float>(0);
    auto const dx = first ? TensorView<float>{} : ctx.input_gradient<float>(0);
    auto const dw = ctx.parameter_gradient<float>("w");
    auto const w = ctx.parameter<float>("w"), dy = ctx.output_gradient<float>("y");
    ctx.stream().launch([=, y = ctx.saved().take<float>(out)] {
      std::ranges::fill(dx, 0.0F);
      for_each_tap(out, in, [&](auto o, auto k, auto i) {
        auto const dz = dy[o] * (1 - y[o] * y[o]);
        dw[k] += dz * x[i];
        if (!dx.empty()) {
          dx[i] += dz * w[k];
        }
      });
    });
  }

 private:
  TensorTable x_of(BatchShape s) const { return {{"x", signal(s, inputs, step)}}; }
};

/// Halves a signal: y is the mean of two neighbours.
struct Down {
  std::int64_t channels, step;

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", signal(s, channels, step)}}; }
  TensorTable boundary(BatchShape s) const { return {{"y", signal(s, channels, 2 * step)}}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input<float>("x"), y = ctx.output<float>("y")] {
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = (x[2 * i] + x[2 * i + 1]) / 2;
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch(
        [dx = ctx.input_gradient<float>("x"), dy = ctx.output_gradient<float>("y")] {
          for (std::size_t i = 0; i < dx.size(); ++i) {
            dx[i] = dy[i / 2] / 2;
          }
        });
  }
};

/// Doubles a signal, and puts the one that was carried past the layers below beside it: it ends a
/// skip connection.
struct Up {
  std::int64_t channels, step;

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const {
    return {{"x", signal(s, channels, 2 * step)}, {"skip", signal(s, channels, step)}};
  }
  TensorTable boundary(BatchShape s) const { return {{"y", signal(s, 2 * channels, step)}}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([row = row_elements(ctx.shape()),
                         x = ctx.input<float>("x"),
                         skip = ctx.input<float>("skip"),
                         y = ctx.output<float>("y")] {
      for (std::size_t i = 0; i < skip.size(); ++i) {
        auto const left = i / row * 2 * row + i % row;
        y[left] = x[i / 2];
        y[left + row] = skip[i];
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([row = row_elements(ctx.shape()),
                         dx = ctx.input_gradient<float>("x"),
                         dskip = ctx.input_gradient<float>("skip"),
                         dy = ctx.output_gradient<float>("y")] {
      std::ranges::fill(dx, 0.0F);
      for (std::size_t i = 0; i < dskip.size(); ++i) {
        auto const left = i / row * 2 * row + i % row;
        dx[i / 2] += dy[left];
        dskip[i] = dy[left + row];
      }
    });
  }

 private:
  std::size_t row_elements(BatchShape s) const {
    return static_cast<std::size_t>(channels * s.length / step);
  }
};

/// The loss: half the mean of (sum of channels - clean)^2.
struct SquaredError {
  std::int64_t channels;

  ParameterTable parameters() const { return {{{"w", {channels}}, Initial::normal(0.3F)}}; }
  TensorTable input(BatchShape s) const { return {{"x", signal(s, channels, 1)}}; }
  TensorTable side_inputs(BatchShape s) const { return {{"clean", signal(s, 1, 1)}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape s) const {
    return {.saved_bytes = side_inputs(s).bytes(), .workspace_bytes = side_inputs(s).bytes()};
  }
  auto loss_terms(HostSpan<HostTensor const>, BatchShape s) const { return s.positions(); }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto memory = ctx.saving() ? ctx.saved() : ctx.workspace();
    ctx.stream().launch([error = memory.take<float>(signal(ctx.shape(), 1, 1)),
                         length = static_cast<std::size_t>(ctx.shape().length),
                         x = ctx.input<float>("x"),
                         w = ctx.parameter<float>("w"),
                         clean = ctx.side_input<float>("clean"),
                         loss = ctx.loss(),
                         scale = ctx.gradient_scale()] {
      double sum = 0;
      for (std::size_t p = 0; p < error.size(); ++p) {
        error[p] = -clean[p];
        for (std::size_t c = 0; c < w.size(); ++c) {
          error[p] += w[c] * x[(p / length * w.size() + c) * length + p % length];
        }
        sum += static_cast<double>(error[p] * error[p]) / 2;
      }
      loss[0] = sum * scale;
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([error = ctx.saved().take<float>(signal(ctx.shape(), 1, 1)),
                         length = static_cast<std::size_t>(ctx.shape().length),
                         x = ctx.input<float>("x"),
                         w = ctx.parameter<float>("w"),
                         dx = ctx.input_gradient<float>("x"),
                         dw = ctx.parameter_gradient<float>("w"),
                         scale = static_cast<float>(ctx.gradient_scale())] {
      for (std::size_t p = 0; p < error.size(); ++p) {
        for (std::size_t c = 0; c < w.size(); ++c) {
          auto const i = (p / length * w.size() + c) * length + p % length;
          dx[i] = scale * error[p] * w[c];
          dw[c] += scale * error[p] * x[i];
        }
      }
    });
  }
};

/// Two convolutions lead down, two lead up again, and one stands below. Each skip connection
/// carries what a convolution makes past all that happens at half the length.
auto unet(std::int64_t channels) {
  auto const convolution = [&](std::int64_t step) { return Convolution{channels, channels, step}; };
  auto const join = [&](std::int64_t step) { return Convolution{2 * channels, channels, step}; };
  return Sequential{
      Convolution{1, channels, 1, true},
      skip(fork(convolution(1)),
           Down{channels, 1},
           skip(fork(convolution(2)), Down{channels, 2}, convolution(4), Up{channels, 2}),
           join(2),
           Up{channels, 1}),
      join(1),
      SquaredError{channels}};
}

}  // namespace

int main() {
  BatchShape const shape{.rows = 16, .length = 32};
  std::size_t const micro_batches = 2;
  HostBackendOptions machine;
  machine.devices = 3;
  HostBackend backend(machine);
  Pipeline pipeline{unet(8),
                    AdamW({.rate = LearningRate::constant(0.01)}),
                    backend,
                    PipelineOptions{.capacity = shape, .micro_batches_per_round = micro_batches}};

  std::mt19937 random(1);
  std::vector<float> clean(micro_batches * static_cast<std::size_t>(shape.positions()));
  std::vector<float> noisy(clean.size());
  double first = 0, last = 0;
  for (int step = 1; step <= 200; ++step) {
    float level = 0;
    for (std::size_t p = 0; p < clean.size(); ++p) {
      auto const word = random();
      level = p % 32 == 0 || word % 8 == 0 ? static_cast<float>(word / 8 % 3) - 1 : level;
      clean[p] = level;
      noisy[p] = level + static_cast<float>(random() % 1001) / 1000 - 0.5F;
    }
    last =
        pipeline.forward_backward(Batch(micro_batches, shape).set("x", noisy).set("clean", clean));
    pipeline.step();
    first = step == 1 ? last : first;
    if (step == 1 || step % 40 == 0) {
      std::printf("step %3d: loss %.4f\n", step, last);
    }
  }
  return last < first / 4 ? 0 : 1;
}
