// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A pre-norm transformer block with grouped-query attention and SwiGLU.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/transformer_block_memory.hpp>
#include <roundpipe/nn/transformer_block_parameters.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace roundpipe::nn {

/// One decoder block, in the shapes of Llama, Mistral, Qwen2 and Qwen3, as configured:
///
///     middle = x + dropout(o_proj(attention(rotary(q), rotary(k), v)))   q, k, v of norm(x)
///     y = middle + dropout(down_proj(silu(gate) up))                     gate, up of norm(middle)
///
/// Input and boundary are `hidden` [rows, length, hidden] of type config.storage. Positions count
/// from 0 in each row; each position attends to itself and to earlier ones, with a sliding window
/// to the last of these. Parameters have the names and the [out, in] layout of Hugging Face's
/// checkpoints and the type config.parameter; biases follow the other parameters. Gains and biases
/// are exempt from weight decay.
///
/// The saving forward keeps, in four save levels, the attention's output and its log-sum-exp;
/// queries, keys, values; gate and up; the hidden state between the halves. Where nobody reads its
/// output, it leaves out the SwiGLU and the last product. The backward recomputes what needs no
/// product: norms, rotated queries and keys (only with query_key_norm), and the SwiGLU.
template <Ops O>
class TransformerBlock {
 public:
  using Stream = typename O::Stream;

  /// \param frozen says that no parameter of the block is trained. The block ignores
  /// `config.frozen_blocks` and `full_attention_blocks`, which concern a whole transformer.
  /// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
  explicit TransformerBlock(TransformerConfig const& config, bool frozen = false)
      : config_(config.resolved()), frozen_(frozen) {}

  [[nodiscard]] TransformerConfig const& config() const noexcept { return config_; }
  [[nodiscard]] std::string name() const { return "transformer block"; }

  [[nodiscard]] ParameterTable parameters() const { return places_.table(config_, frozen_); }
  [[nodiscard]] TensorTable boundary(BatchShape shape) const {
    return {{"hidden", {shape.rows, shape.length, config_.hidden}, config_.storage}};
  }
  [[nodiscard]] TensorTable input(BatchShape shape) const { return boundary(shape); }
  [[nodiscard]] Footprint footprint(BatchShape shape) const {
    return detail::block_footprint<O>(config_, shape);
  }
  [[nodiscard]] std::vector<Bytes> save_levels(BatchShape shape) const {
    return detail::block_save_levels(config_, shape);
  }
  /// Counts the products and the visible part of attention: two products of the size of the scores
  /// in the forward, five in the backward (Dao et al. 2022, appendix B).
  [[nodiscard]] FlopCount work(BatchShape shape) const {
    auto const number = [](std::int64_t n) { return static_cast<double>(n); };
    auto const product = [&](std::int64_t width) {  // from or to the hidden width
      return 2 * number(shape.positions()) * number(config_.hidden) * number(width);
    };
    auto const queries = product(config_.query_width() + 2 * config_.kv_width());
    auto const projected = product(config_.query_width());
    auto const down = product(config_.intermediate);
    auto const products = queries + projected + 3 * down;
    auto const window =
        config_.sliding_window == 0 ? shape.length : std::min(shape.length, config_.sliding_window);
    auto const visible = number(shape.rows) * (number(window) * number(window + 1) / 2 +
                                               number(shape.length - window) * number(window));
    auto const scores = 2 * visible * number(config_.query_width());
    return {products + 2 * scores,
            2 * products + 5 * scores,
            {products - down + 2 * scores, products - down, projected + 2 * down, projected}};
  }

  void forward(ForwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto keep = ctx.saved();
    auto work = ctx.workspace();
    auto const saved = detail::BlockSaved(ctx.saving() ? keep : work, c, ctx.shape());
    auto const m = detail::BlockForward<O>(work, c, ctx.shape(), saved, ctx.saving());
    O const ops(ctx.stream(), m.scratch);
    auto const& x = ctx.input(0);
    auto const epsilon = c.norm_epsilon;

    auto const found = ctx.found_level();
    bool const attends = found < detail::keeps_attention;
    if (found < detail::keeps_queries) {
      ops.rms_norm(m.normed, x, parameter(ctx, P::input_norm), epsilon);
      project(ops, ctx, saved.q, m.normed, P::q_proj, absent);
      project(ops, ctx, saved.k, m.normed, P::k_proj, absent);
      project(ops, ctx, saved.v, m.normed, P::v_proj, absent);
      if (attends || !c.query_key_norm) {
        rotate(ops, ctx, m.rotated_q, m.rotated_k, saved);
      }
    }
    if (attends) {
      ops.attention(saved.attended, saved.lse, m.rotated_q, m.rotated_k, saved.v, c.sliding_window);
    }
    if (found < detail::keeps_all) {
      project_onto(ops, ctx, saved.middle, saved.attended, P::o_proj, x, m.projected);
    }
    if (found < detail::keeps_products) {
      ops.rms_norm(m.normed, saved.middle, parameter(ctx, P::middle_norm), epsilon);
      project(ops, ctx, saved.gate, m.normed, P::gate_proj, absent);
      project(ops, ctx, saved.up, m.normed, P::up_proj, absent);
    }
    if (!ctx.wants_output()) {
      return;
    }
    ops.swiglu(m.activation, saved.gate, saved.up);
    project_onto(ops, ctx, ctx.output(0), m.activation, P::down_proj, saved.middle, m.projected);
  }

  void backward(BackwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto keep = ctx.saved();
    auto work = ctx.workspace();
    auto const saved = detail::BlockSaved(keep, c, ctx.shape());
    auto const m = detail::BlockBackward<O>(work, c, ctx.shape(), saved);
    O const ops(ctx.stream(), m.scratch);
    auto const weight = [&](Parameter p) -> auto const& { return parameter(ctx, p); };
    auto const sum = [&](Parameter p) -> auto const& { return ctx.parameter_gradient(places_[p]); };
    auto const trains = [&](Parameter p) { return sum(p).present(); };
    auto const add_gradients = [&](Parameter p, DeviceTensor const& dy, DeviceTensor const& x) {
      ops.linear_weight_gradient(sum(p), dy, x);
      if (auto const bias = P::bias_of(p); places_.has(bias)) {
        ops.bias_gradient(sum(bias), dy);
      }
    };
    auto const epsilon = c.norm_epsilon;

    // y = middle + dropout(down_proj(activation))
    auto const& dy = ctx.output_gradient(0);
    auto const& dprojected = behind_dropout(ops, ctx, m.mlp_projected, dy, P::down_proj);
    ops.linear_input_gradient(m.up, dprojected, weight(P::down_proj), absent);
    ops.swiglu_backward(m.gate, m.up, m.activation, m.up, saved.gate, saved.up);
    add_gradients(P::down_proj, dprojected, m.activation);
    // gate, up of norm(middle). `middle` holds the norm, then its gradient, then the gradient of
    // middle.
    if (trains(P::gate_proj) || trains(P::up_proj)) {
      ops.rms_norm(m.middle, saved.middle, weight(P::middle_norm), epsilon);
    }
    add_gradients(P::gate_proj, m.gate, m.middle);
    add_gradients(P::up_proj, m.up, m.middle);
    ops.linear_input_gradient(m.middle, m.gate, weight(P::gate_proj), absent);
    ops.linear_input_gradient(m.middle, m.up, weight(P::up_proj), m.middle);
    ops.rms_norm_backward(
        m.middle, sum(P::middle_norm), m.middle, saved.middle, weight(P::middle_norm), dy, epsilon);

    // middle = x + dropout(o_proj(attended))
    auto const& dattended = behind_dropout(ops, ctx, m.attention_projected, m.middle, P::o_proj);
    ops.linear_input_gradient(m.attended, dattended, weight(P::o_proj), absent);
    add_gradients(P::o_proj, dattended, saved.attended);
    if (c.query_key_norm) {
      rotate(ops, ctx, m.rotated_q, m.rotated_k, saved);
    }
    ops.attention_backward(m.q,
                           m.k,
                           m.v,
                           m.attended,
                           m.rotated_q,
                           m.rotated_k,
                           saved.v,
                           saved.attended,
                           saved.lse,
                           c.sliding_window);
    auto const unrotate = [&](Parameter p, DeviceTensor const& d, DeviceTensor const& projected) {
      bool const norm = c.query_key_norm;
      ops.rotary_backward(
          d, norm ? sum(p) : absent, d, projected, norm ? weight(p) : absent, rotary_);
    };
    unrotate(P::q_norm, m.q, saved.q);
    unrotate(P::k_norm, m.k, saved.k);
    // q, k, v of norm(x)
    auto const& x = ctx.input(0);
    if (trains(P::q_proj) || trains(P::k_proj) || trains(P::v_proj)) {
      ops.rms_norm(m.normed, x, weight(P::input_norm), epsilon);
    }
    add_gradients(P::q_proj, m.q, m.normed);
    add_gradients(P::k_proj, m.k, m.normed);
    add_gradients(P::v_proj, m.v, m.normed);
    if (!ctx.input_gradient(0).present() && !trains(P::input_norm)) {
      return;
    }
    ops.linear_input_gradient(m.normed, m.q, weight(P::q_proj), absent);
    ops.linear_input_gradient(m.normed, m.k, weight(P::k_proj), m.normed);
    ops.linear_input_gradient(m.normed, m.v, weight(P::v_proj), m.normed);
    ops.rms_norm_backward(ctx.input_gradient(0),
                          sum(P::input_norm),
                          m.normed,
                          x,
                          weight(P::input_norm),
                          m.middle,
                          epsilon);
  }

 private:
  using P = detail::BlockParameters;
  using Parameter = P::Parameter;

  [[nodiscard]] DeviceTensor const& parameter(LayerContext<Stream> const& ctx, Parameter p) const {
    return ctx.parameter(places_[p]);
  }
  [[nodiscard]] bool drops(LayerContext<Stream> const& ctx) const {
    return config_.dropout > 0 && !ctx.evaluating();
  }
  /// Each projection onto the residual stream has its own random numbers.
  [[nodiscard]] DropoutOptions dropout(LayerContext<Stream> const& ctx, Parameter p) const {
    return {config_.dropout, ctx.random().with_stream(static_cast<std::uint32_t>(p))};
  }

  void rotate(O const& ops,
              LayerContext<Stream> const& ctx,
              DeviceTensor const& q,
              DeviceTensor const& k,
              detail::BlockSaved const& saved) const {
    bool const norm = config_.query_key_norm;
    ops.rotary(q, saved.q, norm ? parameter(ctx, P::q_norm) : absent, rotary_);
    ops.rotary(k, saved.k, norm ? parameter(ctx, P::k_norm) : absent, rotary_);
  }

  /// y = x weightᵀ + bias + addend.
  void project(O const& ops,
               LayerContext<Stream> const& ctx,
               DeviceTensor const& y,
               DeviceTensor const& x,
               Parameter p,
               DeviceTensor const& addend) const {
    auto const bias = P::bias_of(p);
    if (places_.has(bias)) {
      ops.add_bias(y, parameter(ctx, bias), addend);
    }
    ops.linear(y, x, parameter(ctx, p), places_.has(bias) ? y : addend);
  }

  /// y = residual + dropout(x weightᵀ + bias). \p projected is used with dropout only.
  void project_onto(O const& ops,
                    LayerContext<Stream> const& ctx,
                    DeviceTensor const& y,
                    DeviceTensor const& x,
                    Parameter p,
                    DeviceTensor const& residual,
                    DeviceTensor const& projected) const {
    if (drops(ctx)) {
      project(ops, ctx, projected, x, p, absent);
      ops.dropout(y, projected, residual, dropout(ctx, p));
    } else {
      project(ops, ctx, y, x, p, residual);
    }
  }

  /// The gradient of a projection's output: \p dy, or \p memory, which receives the dropout's
  /// gradient.
  DeviceTensor const& behind_dropout(O const& ops,
                                     LayerContext<Stream> const& ctx,
                                     DeviceTensor const& memory,
                                     DeviceTensor const& dy,
                                     Parameter p) const {
    if (!drops(ctx)) {
      return dy;
    }
    ops.dropout(memory, dy, absent, dropout(ctx, p));
    return memory;
  }

  TransformerConfig config_;
  bool frozen_;
  P places_{config_};
  RotaryOptions rotary_{config_.rope_theta,
                        config_.norm_epsilon,
                        config_.rope_scaling.blend(config_.rope_theta, config_.head_dim)};
};

}  // namespace roundpipe::nn
