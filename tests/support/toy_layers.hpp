// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Small layers as a user would write them for the host backend: plain deterministic loops.

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/random.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// Element \p i of an f32, bf16 or f16 tensor. For enqueued work only.
inline float load(DeviceTensor const& tensor, std::size_t i) {
  auto const* const bytes = tensor.device_pointer();
  switch (tensor.dtype()) {
    case DType::bf16:
      return reinterpret_cast<BFloat16 const*>(bytes)[i];
    case DType::f16:
      return reinterpret_cast<Float16 const*>(bytes)[i];
    default:
      return reinterpret_cast<float const*>(bytes)[i];
  }
}
inline void store(DeviceTensor const& tensor, std::size_t i, float value) {
  auto* const bytes = tensor.device_pointer();
  switch (tensor.dtype()) {
    case DType::bf16:
      reinterpret_cast<BFloat16*>(bytes)[i] = BFloat16(value);
      break;
    case DType::f16:
      reinterpret_cast<Float16*>(bytes)[i] = Float16(value);
      break;
    default:
      reinterpret_cast<float*>(bytes)[i] = value;
  }
}
/// Stores to a tensor that may be absent, as an input gradient.
inline void store_if(DeviceTensor const& tensor, std::size_t i, float value) {
  if (tensor.present()) {
    store(tensor, i, value);
  }
}
/// Adds to a parameter gradient, which is absent if the parameter is frozen.
inline void add(DeviceTensor const& tensor, std::size_t i, float value) {
  if (tensor.present()) {
    store(tensor, i, load(tensor, i) + value);
  }
}

/// y[p, j] = sum over i of x[p, i] w[i, j], or of x[p, i] w[j, i] when \p transposed.
inline void multiply(DeviceTensor const& y,
                     DeviceTensor const& x,
                     DeviceTensor const& w,
                     bool transposed) {
  auto const rows = static_cast<std::size_t>(w.shape()[0]);
  auto const columns = static_cast<std::size_t>(w.shape()[1]);
  auto const from = transposed ? columns : rows;
  auto const to = transposed ? rows : columns;
  for (std::size_t p = 0; p < x.size() / from; ++p) {
    for (std::size_t j = 0; j < to; ++j) {
      float sum = 0;
      for (std::size_t i = 0; i < from; ++i) {
        sum += load(x, p * from + i) * load(w, transposed ? j * columns + i : i * columns + j);
      }
      store(y, p * to + j, sum);
    }
  }
}
/// dw[i, j] += sum over p of x[p, i] dy[p, j], unless dw is absent.
inline void add_products(DeviceTensor const& dw, DeviceTensor const& x, DeviceTensor const& dy) {
  if (!dw.present()) {
    return;
  }
  auto const rows = static_cast<std::size_t>(dw.shape()[0]);
  auto const columns = static_cast<std::size_t>(dw.shape()[1]);
  for (std::size_t p = 0; p < x.size() / rows; ++p) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        add(dw, i * columns + j, load(x, p * rows + i) * load(dy, p * columns + j));
      }
    }
  }
}

/// The common properties of toy layers: the width of their boundaries, the types, and the frozen
/// parameters.
struct ToyTypes {
  std::int64_t width = 4;
  DType parameter = DType::f32;  ///< f32, bf16 or f16
  DType boundary = DType::f32;   ///< f32, bf16 or f16
  std::uint32_t frozen = 0;      ///< Bit i: each layer's parameter i is frozen.

  static constexpr std::uint32_t all = ~std::uint32_t{0};

  [[nodiscard]] Shape shape(BatchShape batch) const { return {batch.rows, batch.length, width}; }
  [[nodiscard]] TensorTable hidden(BatchShape batch) const {
    return {{"hidden", shape(batch), boundary}};
  }
  /// Two real tensors with an integer one between them.
  [[nodiscard]] TensorTable pair(BatchShape batch) const {
    return {{"left", shape(batch), boundary},
            {"mark", {batch.rows, batch.length}, DType::i32},
            {"right", shape(batch), boundary}};
  }
  [[nodiscard]] ParameterSpec matrix(std::string name, std::int64_t rows, std::string key) const {
    return {{std::move(name), {rows, width}, parameter},
            Initial::normal(0.5F),
            DecayGroup::decayed,
            std::move(key)};
  }
  /// \p table with its frozen parameters marked.
  [[nodiscard]] ParameterTable with_frozen(ParameterTable table) const {
    for (std::size_t i = 0; i < table.size(); ++i) {
      table[i].frozen = (frozen >> i & 1U) != 0;
    }
    return table;
  }
};

/// hidden = values W, where `values` [rows, length, inputs] comes from the batch.
struct ToyInput {
  ToyTypes types{};
  std::int64_t inputs = 3;
  std::string sharing_key{};  ///< Of W.

  std::string name() const { return "toy input"; }
  ParameterTable parameters() const {
    return types.with_frozen({types.matrix("weight", inputs, sharing_key)});
  }
  bool backward_reads_parameters() const { return false; }
  TensorTable input(BatchShape) const { return {}; }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  TensorTable side_inputs(BatchShape shape) const {
    return {{"values", {shape.rows, shape.length, inputs}, DType::f32}};
  }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([y = ctx.output(0), x = ctx.side_input(0), w = ctx.parameter(0)] {
      multiply(y, x, w, false);
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([dw = ctx.parameter_gradient(0),
                         x = ctx.side_input(0),
                         dy = ctx.output_gradient(0)] { add_products(dw, x, dy); });
  }
};

/// hidden' = tanh(hidden W + b). It saves hidden', then the slope of tanh, a save level each.
struct ToyDense {
  ToyTypes types{};
  std::string sharing_key{};     ///< Of W.
  bool empty_parameter = false;  ///< Adds a third parameter, without elements.

  std::string name() const { return "toy dense"; }
  ParameterTable parameters() const {
    ParameterTable table{
        types.matrix("weight", types.width, sharing_key),
        {{"bias", {types.width}, types.parameter}, Initial::normal(0.1F), DecayGroup::exempt, {}}};
    if (empty_parameter) {
      table.push_back({{"nothing", {0, types.width}, types.parameter}, Initial::normal(1)});
    }
    return types.with_frozen(std::move(table));
  }
  TensorTable input(BatchShape shape) const { return types.hidden(shape); }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  Footprint footprint(BatchShape shape) const {
    auto const bytes = TensorTable{{"", types.shape(shape), DType::f32}}.bytes();
    return {2 * bytes, bytes};
  }
  std::vector<Bytes> save_levels(BatchShape shape) const {
    auto const saved = footprint(shape).saved_bytes;
    return {saved / 2, saved};
  }
  FlopCount work(BatchShape shape) const {
    auto const flops = static_cast<double>(2 * shape.positions() * types.width * types.width);
    return {flops, 2 * flops};
  }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto memory = ctx.saving() ? ctx.saved() : ctx.workspace();
    auto const t = memory.take(types.shape(ctx.shape()), DType::f32);
    auto const slope =
        ctx.saving() ? memory.take(types.shape(ctx.shape()), DType::f32) : DeviceTensor{};
    ctx.stream().launch([t,
                         slope,
                         y = ctx.wants_output() ? ctx.output(0) : DeviceTensor{},
                         x = ctx.input(0),
                         w = ctx.parameter(0),
                         b = ctx.parameter(1),
                         finds_t = ctx.found_level() > 0] {
      if (!finds_t) {
        multiply(t, x, w, false);
      }
      for (std::size_t i = 0; i < t.size(); ++i) {
        if (!finds_t) {
          store(t, i, std::tanh(load(t, i) + load(b, i % b.size())));
        }
        store_if(slope, i, 1 - load(t, i) * load(t, i));
        store_if(y, i, load(t, i));
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto saved = ctx.saved();
    (void)saved.take(types.shape(ctx.shape()), DType::f32);  // t
    auto const slope = saved.take(types.shape(ctx.shape()), DType::f32);
    auto const dz = ctx.workspace().take(types.shape(ctx.shape()), DType::f32);
    ctx.stream().launch([slope,
                         dz,
                         dy = ctx.output_gradient(0),
                         dx = ctx.input_gradient(0),
                         x = ctx.input(0),
                         w = ctx.parameter(0),
                         dw = ctx.parameter_gradient(0),
                         db = ctx.parameter_gradient(1)] {
      for (std::size_t i = 0; i < slope.size(); ++i) {
        store(dz, i, load(dy, i) * load(slope, i));
        add(db, i % db.size(), load(dz, i));  // an absent tensor has a size, too
      }
      add_products(dw, x, dz);
      if (dx.present()) {
        multiply(dx, dz, w, true);
      }
    });
  }
};

/// hidden' = factor hidden: a layer without parameters.
struct ToyScale {
  ToyTypes types{};
  float factor = 0.75F;

  std::string name() const { return "toy scale"; }
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return types.hidden(shape); }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const { scale(ctx, ctx.output(0), ctx.input(0)); }
  void backward(BackwardContext<HostStream>& ctx) const {
    if (ctx.input_gradient(0).present()) {
      scale(ctx, ctx.input_gradient(0), ctx.output_gradient(0));
    }
  }

 private:
  void scale(LayerContext<HostStream>& ctx, DeviceTensor const& y, DeviceTensor const& x) const {
    ctx.stream().launch([y, x, f = factor] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        store(y, i, f * load(x, i));
      }
    });
  }
};

/// Drops elements with \c rate, and divides the others by 1 - rate. The backward draws again.
struct ToyDropout {
  ToyTypes types{};
  float rate = 0.25F;

  std::string name() const { return "toy dropout"; }
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return types.hidden(shape); }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const { drop(ctx, ctx.output(0), ctx.input(0)); }
  void backward(BackwardContext<HostStream>& ctx) const {
    if (ctx.input_gradient(0).present()) {
      drop(ctx, ctx.input_gradient(0), ctx.output_gradient(0));
    }
  }

 private:
  void drop(LayerContext<HostStream>& ctx, DeviceTensor const& y, DeviceTensor const& x) const {
    auto const r = ctx.evaluating() ? 0.0F : rate;
    ctx.stream().launch([y, x, r, key = ctx.random()] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        store(y, i, uniform(random_word(key, i)) < r ? 0.0F : load(x, i) / (1 - r));
      }
    });
  }
};

/// left = gain hidden, right = hidden, mark = whether the position is odd.
struct ToyTwoOut {
  ToyTypes types{};

  std::string name() const { return "toy two out"; }
  ParameterTable parameters() const {
    return types.with_frozen(
        {{{"gain", {types.width}, types.parameter}, Initial::ones(), DecayGroup::exempt, {}}});
  }
  TensorTable input(BatchShape shape) const { return types.hidden(shape); }
  TensorTable boundary(BatchShape shape) const { return types.pair(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input(0),
                         g = ctx.parameter(0),
                         left = ctx.output(0),
                         mark = ctx.output<std::int32_t>(1),
                         right = ctx.output(2)] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        store(left, i, load(g, i % g.size()) * load(x, i));
        store(right, i, load(x, i));
      }
      for (std::size_t p = 0; p < mark.size(); ++p) {
        mark[p] = static_cast<std::int32_t>(p % 2);
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input(0),
                         g = ctx.parameter(0),
                         dx = ctx.input_gradient(0),
                         dg = ctx.parameter_gradient(0),
                         dleft = ctx.output_gradient(0),
                         dright = ctx.output_gradient(2)] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        add(dg, i % g.size(), load(dleft, i) * load(x, i));
        store_if(dx, i, load(g, i % g.size()) * load(dleft, i) + load(dright, i));
      }
    });
  }
};

/// left' = left + right where marked, else left; right' = gain right - left; mark' = mark.
struct ToyCross {
  ToyTypes types{};

  std::string name() const { return "toy cross"; }
  ParameterTable parameters() const {
    return types.with_frozen(
        {{{"gain", {types.width}, types.parameter}, Initial::ones(), DecayGroup::decayed, {}}});
  }
  TensorTable input(BatchShape shape) const { return types.pair(shape); }
  TensorTable boundary(BatchShape shape) const { return types.pair(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([g = ctx.parameter(0),
                         left = ctx.input(0),
                         mark = ctx.input<std::int32_t>(1),
                         right = ctx.input(2),
                         new_left = ctx.output(0),
                         new_mark = ctx.output<std::int32_t>(1),
                         new_right = ctx.output(2)] {
      auto const width = g.size();
      for (std::size_t i = 0; i < left.size(); ++i) {
        auto const l = load(left, i);
        auto const r = load(right, i);
        store(new_left, i, mark[i / width] == 1 ? l + r : l);
        store(new_right, i, load(g, i % width) * r - l);
      }
      for (std::size_t p = 0; p < mark.size(); ++p) {
        new_mark[p] = mark[p];
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([g = ctx.parameter(0),
                         dg = ctx.parameter_gradient(0),
                         mark = ctx.input<std::int32_t>(1),
                         right = ctx.input(2),
                         dleft = ctx.input_gradient(0),
                         dright = ctx.input_gradient(2),
                         new_dleft = ctx.output_gradient(0),
                         new_dright = ctx.output_gradient(2)] {
      auto const width = g.size();
      for (std::size_t i = 0; i < right.size(); ++i) {
        auto const dl = load(new_dleft, i);
        auto const dr = load(new_dright, i);
        add(dg, i % width, dr * load(right, i));
        store_if(dleft, i, dl - dr);
        store_if(dright, i, load(g, i % width) * dr + (mark[i / width] == 1 ? dl : 0.0F));
      }
    });
  }
};

/// hidden = left - right: two tensors in, no parameters.
struct ToyTwoIn {
  ToyTypes types{};

  std::string name() const { return "toy two in"; }
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return types.pair(shape); }
  TensorTable boundary(BatchShape shape) const { return types.hidden(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([y = ctx.output(0), left = ctx.input(0), right = ctx.input(2)] {
      for (std::size_t i = 0; i < y.size(); ++i) {
        store(y, i, load(left, i) - load(right, i));
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([dy = ctx.output_gradient(0),
                         dleft = ctx.input_gradient(0),
                         dright = ctx.input_gradient(2)] {
      for (std::size_t i = 0; i < dy.size(); ++i) {
        store_if(dleft, i, load(dy, i));
        store_if(dright, i, -load(dy, i));
      }
    });
  }
};

/// predictions = hidden W^T + c; the loss is half the squared distance to `targets`
/// [rows, length, outputs], summed over the positions where `mask` [rows, length] is not 0.
/// W [outputs, width] may be shared with the \ref ToyInput; c is this layer's own.
struct ToyLoss {
  ToyTypes types{};
  std::int64_t outputs = 3;
  std::string sharing_key{};  ///< Of W.

  std::string name() const { return "toy loss"; }
  ParameterTable parameters() const {
    return types.with_frozen(
        {{{"shift", {outputs}, types.parameter}, Initial::zeros(), DecayGroup::exempt, {}},
         types.matrix("weight", outputs, sharing_key)});
  }
  TensorTable input(BatchShape shape) const { return types.hidden(shape); }
  TensorTable boundary(BatchShape) const { return {}; }
  TensorTable side_inputs(BatchShape shape) const {
    return {{"targets", outer(shape), DType::f32}, {"mask", {shape.rows, shape.length}, DType::u8}};
  }
  TensorTable results(BatchShape shape) const {
    return {{"predictions", outer(shape), DType::f32}};
  }
  std::int64_t loss_terms(std::span<HostTensor const> side_inputs, BatchShape) const {
    std::int64_t terms = 0;
    for (auto const m : side_inputs[1].as<std::uint8_t>()) {
      terms += m != 0 ? 1 : 0;
    }
    return terms;
  }
  Footprint footprint(BatchShape shape) const {
    auto const bytes = TensorTable{{"", outer(shape), DType::f32}}.bytes();
    return {bytes, bytes};
  }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto const error =
        (ctx.saving() ? ctx.saved() : ctx.workspace()).take(outer(ctx.shape()), DType::f32);
    auto const predictions = ctx.wants_results() ? ctx.result(0) : DeviceTensor{};
    ctx.stream().launch([error,
                         predictions,
                         x = ctx.input(0),
                         c = ctx.parameter(0),
                         w = ctx.parameter(1),
                         targets = ctx.side_input(0),
                         mask = ctx.side_input<std::uint8_t>(1),
                         loss = ctx.loss(),
                         scale = ctx.gradient_scale()] {
      multiply(error, x, w, true);
      double sum = 0;
      for (std::size_t i = 0; i < error.size(); ++i) {
        auto const prediction = load(error, i) + load(c, i % c.size());
        if (predictions.present()) {
          store(predictions, i, prediction);
        }
        auto const counts = mask[i / c.size()] != 0;
        auto const e = counts ? prediction - load(targets, i) : 0.0F;
        store(error, i, e);
        sum += 0.5 * static_cast<double>(e) * static_cast<double>(e);
      }
      loss[0] = sum * scale;
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto const error = ctx.saved().take(outer(ctx.shape()), DType::f32);
    auto const dy = ctx.workspace().take(outer(ctx.shape()), DType::f32);
    ctx.stream().launch([error,
                         dy,
                         dx = ctx.input_gradient(0),
                         x = ctx.input(0),
                         w = ctx.parameter(1),
                         dc = ctx.parameter_gradient(0),
                         dw = ctx.parameter_gradient(1),
                         scale = ctx.gradient_scale()] {
      for (std::size_t i = 0; i < error.size(); ++i) {
        store(dy, i, static_cast<float>(scale) * load(error, i));
        add(dc, i % dc.size(), load(dy, i));
      }
      add_products(dw, dy, x);
      if (dx.present()) {
        multiply(dx, dy, w, false);
      }
    });
  }

 private:
  [[nodiscard]] Shape outer(BatchShape shape) const { return {shape.rows, shape.length, outputs}; }
};

static_assert(Layer<ToyInput, HostStream> && HasSideInputs<ToyInput>);
static_assert(Layer<ToyDense, HostStream> && HasWork<ToyDense> && HasSaveLevels<ToyDense>);
static_assert(Layer<ToyScale, HostStream>);
static_assert(Layer<ToyDropout, HostStream>);
static_assert(Layer<ToyTwoOut, HostStream>);
static_assert(Layer<ToyCross, HostStream>);
static_assert(Layer<ToyTwoIn, HostStream>);
static_assert(Layer<ToyLoss, HostStream> && LossLayer<ToyLoss> && HasResults<ToyLoss>);

}  // namespace roundpipe::test
