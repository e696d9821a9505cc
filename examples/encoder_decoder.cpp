// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An encoder and a decoder learn to turn sequences round. A skip connection carries what the
// encoder makes past the layers of the decoder, and each of them that attends to it reads it there.
#include <roundpipe/roundpipe.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

using namespace roundpipe;

namespace {

constexpr std::int64_t vocabulary = 8, most_positions = 6;
constexpr std::size_t width = 16;
using In = TensorView<float const>;
using Out = TensorView<float>;

TensorSpec hidden(char const* name, BatchShape s) {
  return {name, {s.rows, s.length, width}};
}
ParameterSpec matrix(char const* name, std::int64_t rows) {
  return {{name, {rows, width}}, Initial::normal(0.25F)};
}

/// y += x w, position by position, for rows of x, a w of as many rows as x is wide, and y.
void multiply(Out y, In x, In w) {
  auto const inputs = w.size() / width;
  for (std::size_t i = 0; i < y.size(); ++i) {
    for (std::size_t k = 0; k < inputs; ++k) {
      y[i] += x[i / width * inputs + k] * w[k * width + i % width];
    }
  }
}
/// dx += dy w^T and dw += x^T dy.
void multiply_backward(Out dx, Out dw, In dy, In x, In w) {
  auto const inputs = w.size() / width;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    for (std::size_t k = 0; k < inputs; ++k) {
      dx[i / width * inputs + k] += dy[i] * w[k * width + i % width];
      dw[k * width + i % width] += dy[i] * x[i / width * inputs + k];
    }
  }
}

/// x = table[token] + place[position].
struct Embedding {
  ParameterTable parameters() const {
    return {matrix("table", vocabulary), matrix("place", most_positions)};
  }
  TensorTable input(BatchShape) const { return {}; }
  TensorTable side_inputs(BatchShape s) const {
    return {{"tokens", {s.rows, s.length}, DType::i32}};
  }
  TensorTable boundary(BatchShape s) const { return {hidden("x", s)}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([tokens = ctx.side_input<std::int32_t>("tokens"),
                         length = static_cast<std::size_t>(ctx.shape().length),
                         table = ctx.parameter<float>("table"),
                         place = ctx.parameter<float>("place"),
                         x = ctx.output<float>("x")] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        auto const p = i / width;
        x[i] = table[static_cast<std::size_t>(tokens[p]) * width + i % width] +
               place[p % length * width + i % width];
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([tokens = ctx.side_input<std::int32_t>("tokens"),
                         length = static_cast<std::size_t>(ctx.shape().length),
                         dtable = ctx.parameter_gradient<float>("table"),
                         dplace = ctx.parameter_gradient<float>("place"),
                         dx = ctx.output_gradient<float>("x")] {
      for (std::size_t i = 0; i < dx.size(); ++i) {
        auto const p = i / width;
        dtable[static_cast<std::size_t>(tokens[p]) * width + i % width] += dx[i];
        dplace[p % length * width + i % width] += dx[i];
      }
    });
  }
};

/// y = x + tanh(x w), in the encoder and in the decoder. It saves the hyperbolic tangent.
struct Dense {
  ParameterTable parameters() const { return {matrix("w", width)}; }
  TensorTable input(BatchShape s) const { return {hidden("x", s)}; }
  TensorTable boundary(BatchShape s) const { return {hidden("y", s)}; }
  Footprint footprint(BatchShape s) const {
    return {.saved_bytes = boundary(s).bytes(), .workspace_bytes = boundary(s).bytes()};
  }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto memory = ctx.saving() ? ctx.saved() : ctx.workspace();
    ctx.stream().launch([z = memory.take<float>(ctx.input("x").shape()),
                         x = ctx.input<float>("x"),
                         w = ctx.parameter<float>("w"),
                         y = ctx.output<float>("y")] {
      std::ranges::fill(z, 0.0F);
      multiply(z, x, w);
      for (std::size_t i = 0; i < z.size(); ++i) {
        z[i] = std::tanh(z[i]);
        y[i] = x[i] + z[i];
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto const shape = ctx.input("x").shape();
    ctx.stream().launch([z = ctx.saved().take<float>(shape),
                         dz = ctx.workspace().take<float>(shape),
                         x = ctx.input<float>("x"),
                         w = ctx.parameter<float>("w"),
                         dx = ctx.input_gradient<float>("x"),
                         dw = ctx.parameter_gradient<float>("w"),
                         dy = ctx.output_gradient<float>("y")] {
      for (std::size_t i = 0; i < z.size(); ++i) {
        dz[i] = dy[i] * (1 - z[i] * z[i]);
        dx[i] = dy[i];
      }
      multiply_backward(dx, dw, dz, x, w);
    });
  }
};

/// The decoder begins with what it learns of each position, and with the encoder's output as its
/// memory: the last tensor of the boundary, which a skip connection carries.
struct DecoderStart {
  ParameterTable parameters() const { return {matrix("place", most_positions)}; }
  TensorTable input(BatchShape s) const { return {hidden("x", s)}; }
  TensorTable boundary(BatchShape s) const { return {hidden("y", s), hidden("memory", s)}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().copy(ctx.output("memory"), ctx.input("x"));
    ctx.stream().launch([row = static_cast<std::size_t>(ctx.shape().length) * width,
                         place = ctx.parameter<float>("place"),
                         y = ctx.output<float>("y")] {
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = place[i % row];
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().copy(ctx.input_gradient("x"), ctx.output_gradient("memory"));
    ctx.stream().launch([row = static_cast<std::size_t>(ctx.shape().length) * width,
                         dplace = ctx.parameter_gradient<float>("place"),
                         dy = ctx.output_gradient<float>("y")] {
      for (std::size_t i = 0; i < dy.size(); ++i) {
        dplace[i % row] += dy[i];
      }
    });
  }
};

/// y = x + attention of x to the memory: softmax(x q memory^T) memory v. It reads the carried
/// tensor, or ends the skip connection. It saves the queries, the shares and the values.
struct Attention {
  ParameterTable parameters() const { return {matrix("q", width), matrix("v", width)}; }
  TensorTable input(BatchShape s) const { return {hidden("x", s), hidden("memory", s)}; }
  TensorTable boundary(BatchShape s) const { return {hidden("y", s)}; }
  Footprint footprint(BatchShape s) const {
    TensorCarver carver;
    take(carver, s);
    return {.saved_bytes = carver.used_bytes(), .workspace_bytes = carver.used_bytes()};
  }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto memory_of_call = ctx.saving() ? ctx.saved() : ctx.workspace();
    ctx.stream().launch([t = take(memory_of_call, ctx.shape()),
                         length = static_cast<std::size_t>(ctx.shape().length),
                         x = ctx.input<float>("x"),
                         memory = ctx.input<float>("memory"),
                         q = ctx.parameter<float>("q"),
                         v = ctx.parameter<float>("v"),
                         y = ctx.output<float>("y")] {
      std::ranges::fill(t.queries, 0.0F);
      std::ranges::fill(t.values, 0.0F);
      multiply(t.queries, x, q);
      multiply(t.values, memory, v);
      std::ranges::copy(x, y.begin());
      for (std::size_t p = 0; p < x.size() / width; ++p) {
        auto const shares = std::span(t.shares.begin(), t.shares.end()).subspan(p * length, length);
        auto const first = p / length * length;  // of the row
        for (std::size_t m = 0; m < length; ++m) {
          shares[m] = dot(t.queries, p, memory, first + m);
        }
        float sum = 0;
        for (auto& share : shares) {
          sum += share = std::exp(share);
        }
        for (std::size_t m = 0; m < length; ++m) {
          shares[m] /= sum;
          add(y, p, shares[m], t.values, first + m);
        }
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto saved = ctx.saved();
    auto workspace = ctx.workspace();
    ctx.stream().launch([t = take(saved, ctx.shape()),
                         dt = take(workspace, ctx.shape()),
                         length = static_cast<std::size_t>(ctx.shape().length),
                         x = ctx.input<float>("x"),
                         memory = ctx.input<float>("memory"),
                         q = ctx.parameter<float>("q"),
                         v = ctx.parameter<float>("v"),
                         dx = ctx.input_gradient<float>("x"),
                         dmemory = ctx.input_gradient<float>("memory"),
                         dq = ctx.parameter_gradient<float>("q"),
                         dv = ctx.parameter_gradient<float>("v"),
                         dy = ctx.output_gradient<float>("y")] {
      std::ranges::copy(dy, dx.begin());
      for (auto const gradient : {dmemory, dt.queries, dt.values}) {
        std::ranges::fill(gradient, 0.0F);
      }
      for (std::size_t p = 0; p < x.size() / width; ++p) {
        auto const first = p / length * length;
        float mean = 0;
        for (std::size_t m = 0; m < length; ++m) {
          auto const i = p * length + m;
          dt.shares[i] = dot(dy, p, t.values, first + m);
          mean += t.shares[i] * dt.shares[i];
          add(dt.values, first + m, t.shares[i], dy, p);
        }
        for (std::size_t m = 0; m < length; ++m) {
          auto const i = p * length + m;
          auto const dscore = t.shares[i] * (dt.shares[i] - mean);
          add(dt.queries, p, dscore, memory, first + m);
          add(dmemory, first + m, dscore, t.queries, p);
        }
      }
      multiply_backward(dx, dq, dt.queries, x, q);
      multiply_backward(dmemory, dv, dt.values, memory, v);
    });
  }

 private:
  struct Tensors {
    Out queries, shares, values;
  };
  static Tensors take(TensorCarver& carver, BatchShape s) {
    Shape const rows{s.rows, s.length, width};
    auto const queries = carver.take<float>(rows);
    auto const shares = carver.take<float>({s.rows, s.length, s.length});
    return {queries, shares, carver.take<float>(rows)};
  }
  static float dot(In a, std::size_t i, In b, std::size_t j) {
    float sum = 0;
    for (std::size_t k = 0; k < width; ++k) {
      sum += a[i * width + k] * b[j * width + k];
    }
    return sum;
  }
  /// Position i of a += factor * position j of b.
  static void add(Out a, std::size_t i, float factor, In b, std::size_t j) {
    for (std::size_t k = 0; k < width; ++k) {
      a[i * width + k] += factor * b[j * width + k];
    }
  }
};

/// The loss: the mean cross-entropy of the labels.
struct Guess {
  ParameterTable parameters() const { return {matrix("table", vocabulary)}; }
  TensorTable input(BatchShape s) const { return {hidden("x", s)}; }
  TensorTable side_inputs(BatchShape s) const {
    return {{"labels", {s.rows, s.length}, DType::i32}};
  }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape s) const {
    auto const bytes = TensorTable{{"p", {s.rows, s.length, vocabulary}}}.bytes();
    return {.saved_bytes = bytes, .workspace_bytes = bytes};
  }
  auto loss_terms(HostSpan<HostTensor const>, BatchShape s) const { return s.positions(); }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto memory = ctx.saving() ? ctx.saved() : ctx.workspace();
    ctx.stream().launch([shares = memory.take<float>(shares_shape(ctx.shape())),
                         x = ctx.input<float>("x"),
                         table = ctx.parameter<float>("table"),
                         labels = ctx.side_input<std::int32_t>("labels"),
                         loss = ctx.loss(),
                         scale = ctx.gradient_scale()] {
      double sum = 0;
      for (std::size_t p = 0; p < labels.size(); ++p) {
        float total = 0;
        for (std::size_t w = 0; w < vocabulary; ++w) {
          float score = 0;
          for (std::size_t k = 0; k < width; ++k) {
            score += x[p * width + k] * table[w * width + k];
          }
          total += shares[p * vocabulary + w] = std::exp(score);
        }
        for (std::size_t w = 0; w < vocabulary; ++w) {
          shares[p * vocabulary + w] /= total;
        }
        sum -= std::log(
            static_cast<double>(shares[p * vocabulary + static_cast<std::size_t>(labels[p])]));
      }
      loss[0] = sum * scale;
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([shares = ctx.saved().take<float>(shares_shape(ctx.shape())),
                         x = ctx.input<float>("x"),
                         table = ctx.parameter<float>("table"),
                         labels = ctx.side_input<std::int32_t>("labels"),
                         dx = ctx.input_gradient<float>("x"),
                         dtable = ctx.parameter_gradient<float>("table"),
                         scale = static_cast<float>(ctx.gradient_scale())] {
      std::ranges::fill(dx, 0.0F);
      for (std::size_t i = 0; i < shares.size(); ++i) {
        auto const p = i / vocabulary, w = i % vocabulary;
        auto const hit = static_cast<std::size_t>(labels[p]) == w ? 1.0F : 0.0F;
        auto const dscore = scale * (shares[i] - hit);
        for (std::size_t k = 0; k < width; ++k) {
          dx[p * width + k] += dscore * table[w * width + k];
          dtable[w * width + k] += dscore * x[p * width + k];
        }
      }
    });
  }

 private:
  static Shape shares_shape(BatchShape s) { return {s.rows, s.length, vocabulary}; }
};

}  // namespace

int main() {
  BatchShape const shape{.rows = 16, .length = most_positions};
  std::size_t const micro_batches = 2;
  HostBackendOptions machine;
  machine.devices = 3;
  HostBackend backend(machine);
  Pipeline pipeline{Sequential{Embedding{},
                               repeat(2, Dense{}),
                               skip(DecoderStart{}, reads_skip(Attention{}), Dense{}, Attention{}),
                               Dense{},
                               Guess{}},
                    AdamW({.rate = LearningRate::constant(0.01), .weight_decay = 0}),
                    backend,
                    PipelineOptions{.capacity = shape, .micro_batches_per_round = micro_batches}};

  std::mt19937 random(1);
  std::vector<std::int32_t> tokens(micro_batches * static_cast<std::size_t>(shape.positions()));
  auto labels = tokens;
  double first = 0, last = 0;
  for (int step = 1; step <= 250; ++step) {
    std::ranges::generate(tokens, [&] { return static_cast<std::int32_t>(random() % vocabulary); });
    for (std::size_t row = 0; row < tokens.size(); row += most_positions) {
      std::reverse_copy(&tokens[row], &tokens[row] + most_positions, &labels[row]);
    }
    last = pipeline.forward_backward(
        Batch(micro_batches, shape).set("tokens", tokens).set("labels", labels));
    pipeline.step();
    first = step == 1 ? last : first;
    if (step == 1 || step % 50 == 0) {
      std::printf("step %3d: loss %.4f\n", step, last);
    }
  }
  return last < first / 4 ? 0 : 1;
}
