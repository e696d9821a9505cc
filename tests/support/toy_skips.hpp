// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Toy layers that begin, read and end skip connections, and a model of nested ones.

#include <roundpipe/model/sequential.hpp>
#include <roundpipe/model/skip.hpp>
#include <support/toy_layers.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe::test {

/// hidden' = hidden W + skip^2 / 2. It reads a carried tensor, or ends a connection.
struct ToyJoin {
  ToyTypes types{};

  std::string name() const { return "toy join"; }
  ParameterTable parameters() const {
    return types.with_frozen({types.matrix("weight", types.width, "")});
  }
  TensorTable input(BatchShape shape) const {
    return {{"hidden", types.shape(shape), types.boundary},
            {"skip", types.shape(shape), types.boundary}};
  }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input("hidden"),
                         skip = ctx.input("skip"),
                         w = ctx.parameter(0),
                         y = ctx.output("hidden")] {
      multiply(y, x, w, false);
      for (std::size_t i = 0; i < y.size(); ++i) {
        store(y, i, load(y, i) + load(skip, i) * load(skip, i) / 2);
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input("hidden"),
                         skip = ctx.input("skip"),
                         w = ctx.parameter(0),
                         dy = ctx.output_gradient("hidden"),
                         dx = ctx.input_gradient("hidden"),
                         dskip = ctx.input_gradient("skip"),
                         dw = ctx.parameter_gradient(0)] {
      add_products(dw, x, dy);
      multiply(dx, dy, w, true);
      for (std::size_t i = 0; i < dy.size(); ++i) {
        store(dskip, i, load(dy, i) * load(skip, i));
      }
    });
  }
};

/// hidden' = hidden; mark = whether the position is odd. It hands over an integer tensor to carry.
struct ToyMark {
  ToyTypes types{};

  std::string name() const { return "toy mark"; }
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return types.hidden(shape); }
  TensorTable boundary(BatchShape shape) const {
    return {{"hidden", types.shape(shape), types.boundary},
            {"mark", {shape.rows, shape.length}, DType::i32}};
  }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().copy(ctx.output(0), ctx.input(0));
    ctx.stream().launch([mark = ctx.output<std::int32_t>("mark")] {
      for (std::size_t p = 0; p < mark.size(); ++p) {
        mark[p] = static_cast<std::int32_t>(p % 2);
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().copy(ctx.input_gradient(0), ctx.output_gradient(0));
  }
};

/// hidden' = hidden where marked, else half of it.
struct ToyHalve {
  ToyTypes types{};

  std::string name() const { return "toy halve"; }
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return ToyMark{types}.boundary(shape); }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const { halve(ctx, ctx.output(0), ctx.input(0)); }
  void backward(BackwardContext<HostStream>& ctx) const {
    halve(ctx, ctx.input_gradient(0), ctx.output_gradient(0));
  }

 private:
  void halve(LayerContext<HostStream>& ctx, DeviceTensor const& y, DeviceTensor const& x) const {
    ctx.stream().launch([y,
                         x,
                         mark = ctx.input<std::int32_t>("mark"),
                         width = static_cast<std::size_t>(types.width)] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        store(y, i, load(x, i) * (mark[i / width] == 1 ? 1.0F : 0.5F));
      }
    });
  }
};

/// Three connections, one in another: the outer one carries integers past all layers; the next goes
/// past \p before layers and the inner one, whose tensor \p readers layers read.
inline auto toy_skips(ToyTypes const& types, std::size_t before, std::size_t readers) {
  ToyDense const dense{types};
  ToyJoin const join{types};
  return Sequential{
      ToyInput{types},
      skip(ToyMark{types},
           repeat(before, dense),
           skip(fork(dense, "outer"),
                repeat(before, dense),
                skip(fork(dense, "inner"), repeat(readers, reads_skip(join)), dense, join),
                join),
           ToyHalve{types}),
      ToyLoss{types}};
}

static_assert(Layer<ToyJoin, HostStream> && Layer<ToyMark, HostStream>);
static_assert(Layer<ToyHalve, HostStream>);

}  // namespace roundpipe::test
