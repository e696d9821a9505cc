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
#include <roundpipe/nn/transformer_config.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace roundpipe::nn {

/// One decoder block, in the shape of Llama 3 and, with `query_key_norm`, of Qwen3:
///
///     middle = x + dropout(o_proj(attention(rotary(q), rotary(k), v)))   q, k, v of norm(x)
///     y = middle + dropout(down_proj(silu(gate) up))                     gate, up of norm(middle)
///
/// Input and boundary are `hidden` [rows, length, hidden] of type config.storage. Positions count
/// from 0 in each row; each position attends to itself and to earlier ones. Parameters have the
/// names and the [out, in] layout of Hugging Face's checkpoints and the type config.parameter.
/// Gains are exempt from weight decay.
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
  /// `config.frozen_blocks`, which concerns a whole transformer.
  /// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
  explicit TransformerBlock(TransformerConfig const& config, bool frozen = false)
      : config_(config.resolved()), frozen_(frozen) {}

  [[nodiscard]] TransformerConfig const& config() const noexcept { return config_; }
  [[nodiscard]] std::string name() const { return "transformer block"; }

  [[nodiscard]] ParameterTable parameters() const {
    auto const& c = config_;
    auto const deviation = static_cast<float>(c.initial_deviation);
    // Each block adds two terms to the residual stream (Radford et al. 2019, section 2.3).
    auto const residual =
        static_cast<float>(c.initial_deviation / std::sqrt(2.0 * static_cast<double>(c.layers)));
    ParameterTable table;
    auto const matrix = [&](char const* name, std::int64_t out, std::int64_t in, float d) {
      table.push_back(
          {{name, {out, in}, c.parameter}, Initial::normal(d), DecayGroup::decayed, {}, frozen_});
    };
    auto const gain = [&](char const* name, std::int64_t width) {
      table.push_back(
          {{name, {width}, c.parameter}, Initial::ones(), DecayGroup::exempt, {}, frozen_});
    };
    gain("input_layernorm.weight", c.hidden);
    matrix("self_attn.q_proj.weight", c.query_width(), c.hidden, deviation);
    matrix("self_attn.k_proj.weight", c.kv_width(), c.hidden, deviation);
    matrix("self_attn.v_proj.weight", c.kv_width(), c.hidden, deviation);
    matrix("self_attn.o_proj.weight", c.hidden, c.query_width(), residual);
    gain("post_attention_layernorm.weight", c.hidden);
    matrix("mlp.gate_proj.weight", c.intermediate, c.hidden, deviation);
    matrix("mlp.up_proj.weight", c.intermediate, c.hidden, deviation);
    matrix("mlp.down_proj.weight", c.hidden, c.intermediate, residual);
    if (c.query_key_norm) {
      gain("self_attn.q_norm.weight", c.head_dim);
      gain("self_attn.k_norm.weight", c.head_dim);
    }
    return table;
  }
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
  /// Counts the products and the visible half of attention: two products of the size of the scores
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
    auto const visible = number(shape.rows) * number(shape.length) * number(shape.length + 1) / 2;
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
      ops.rms_norm(m.normed, x, ctx.parameter(input_norm), epsilon);
      ops.linear(saved.q, m.normed, ctx.parameter(q_proj), absent);
      ops.linear(saved.k, m.normed, ctx.parameter(k_proj), absent);
      ops.linear(saved.v, m.normed, ctx.parameter(v_proj), absent);
      if (attends || !c.query_key_norm) {
        rotate(ops, ctx, m.rotated_q, m.rotated_k, saved);
      }
    }
    if (attends) {
      ops.attention(saved.attended, saved.lse, m.rotated_q, m.rotated_k, saved.v);
    }
    if (found < detail::keeps_all) {
      project_onto(ops, ctx, saved.middle, saved.attended, o_proj, x, m.projected);
    }
    if (found < detail::keeps_products) {
      ops.rms_norm(m.normed, saved.middle, ctx.parameter(middle_norm), epsilon);
      ops.linear(saved.gate, m.normed, ctx.parameter(gate_proj), absent);
      ops.linear(saved.up, m.normed, ctx.parameter(up_proj), absent);
    }
    if (!ctx.wants_output()) {
      return;
    }
    ops.swiglu(m.activation, saved.gate, saved.up);
    project_onto(ops, ctx, ctx.output(0), m.activation, down_proj, saved.middle, m.projected);
  }

  void backward(BackwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto keep = ctx.saved();
    auto work = ctx.workspace();
    auto const saved = detail::BlockSaved(keep, c, ctx.shape());
    auto const m = detail::BlockBackward<O>(work, c, ctx.shape(), saved);
    O const ops(ctx.stream(), m.scratch);
    auto const weight = [&](Parameter p) -> auto const& { return ctx.parameter(p); };
    auto const sum = [&](Parameter p) -> auto const& { return ctx.parameter_gradient(p); };
    auto const trains = [&](Parameter p) { return sum(p).present(); };
    auto const epsilon = c.norm_epsilon;

    // y = middle + dropout(down_proj(activation))
    auto const& dy = ctx.output_gradient(0);
    auto const& dprojected = behind_dropout(ops, ctx, m.mlp_projected, dy, down_proj);
    ops.linear_input_gradient(m.up, dprojected, weight(down_proj), absent);
    ops.swiglu_backward(m.gate, m.up, m.activation, m.up, saved.gate, saved.up);
    ops.linear_weight_gradient(sum(down_proj), dprojected, m.activation);
    // gate, up of norm(middle). `middle` holds the norm, then its gradient, then the gradient of
    // middle.
    if (trains(gate_proj) || trains(up_proj)) {
      ops.rms_norm(m.middle, saved.middle, weight(middle_norm), epsilon);
    }
    ops.linear_weight_gradient(sum(gate_proj), m.gate, m.middle);
    ops.linear_weight_gradient(sum(up_proj), m.up, m.middle);
    ops.linear_input_gradient(m.middle, m.gate, weight(gate_proj), absent);
    ops.linear_input_gradient(m.middle, m.up, weight(up_proj), m.middle);
    ops.rms_norm_backward(
        m.middle, sum(middle_norm), m.middle, saved.middle, weight(middle_norm), dy, epsilon);

    // middle = x + dropout(o_proj(attended))
    auto const& dattended = behind_dropout(ops, ctx, m.attention_projected, m.middle, o_proj);
    ops.linear_input_gradient(m.attended, dattended, weight(o_proj), absent);
    ops.linear_weight_gradient(sum(o_proj), dattended, saved.attended);
    if (c.query_key_norm) {
      rotate(ops, ctx, m.rotated_q, m.rotated_k, saved);
    }
    ops.attention_backward(
        m.q, m.k, m.v, m.attended, m.rotated_q, m.rotated_k, saved.v, saved.attended, saved.lse);
    auto const unrotate = [&](Parameter p, DeviceTensor const& d, DeviceTensor const& projected) {
      bool const norm = c.query_key_norm;
      ops.rotary_backward(
          d, norm ? sum(p) : absent, d, projected, norm ? weight(p) : absent, rotary_);
    };
    unrotate(q_norm, m.q, saved.q);
    unrotate(k_norm, m.k, saved.k);
    // q, k, v of norm(x)
    auto const& x = ctx.input(0);
    if (trains(q_proj) || trains(k_proj) || trains(v_proj)) {
      ops.rms_norm(m.normed, x, weight(input_norm), epsilon);
    }
    ops.linear_weight_gradient(sum(q_proj), m.q, m.normed);
    ops.linear_weight_gradient(sum(k_proj), m.k, m.normed);
    ops.linear_weight_gradient(sum(v_proj), m.v, m.normed);
    if (!ctx.input_gradient(0).present() && !trains(input_norm)) {
      return;
    }
    ops.linear_input_gradient(m.normed, m.q, weight(q_proj), absent);
    ops.linear_input_gradient(m.normed, m.k, weight(k_proj), m.normed);
    ops.linear_input_gradient(m.normed, m.v, weight(v_proj), m.normed);
    ops.rms_norm_backward(
        ctx.input_gradient(0), sum(input_norm), m.normed, x, weight(input_norm), m.middle, epsilon);
  }

 private:
  /// The order of the parameter table.
  enum Parameter : std::size_t {
    input_norm,
    q_proj,
    k_proj,
    v_proj,
    o_proj,
    middle_norm,
    gate_proj,
    up_proj,
    down_proj,
    q_norm,
    k_norm,
  };

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
    ops.rotary(q, saved.q, norm ? ctx.parameter(q_norm) : absent, rotary_);
    ops.rotary(k, saved.k, norm ? ctx.parameter(k_norm) : absent, rotary_);
  }

  /// y = residual + dropout(x weightᵀ). \p projected is used with dropout only.
  void project_onto(O const& ops,
                    LayerContext<Stream> const& ctx,
                    DeviceTensor const& y,
                    DeviceTensor const& x,
                    Parameter p,
                    DeviceTensor const& residual,
                    DeviceTensor const& projected) const {
    if (drops(ctx)) {
      ops.linear(projected, x, ctx.parameter(p), absent);
      ops.dropout(y, projected, residual, dropout(ctx, p));
    } else {
      ops.linear(y, x, ctx.parameter(p), residual);
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
  RotaryOptions rotary_{config_.rope_theta, config_.norm_epsilon};
};

}  // namespace roundpipe::nn
