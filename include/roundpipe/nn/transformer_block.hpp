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
#include <roundpipe/nn/transformer_block_maps.hpp>
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
/// checkpoints and the type config.parameter; biases follow the other parameters, and the matrices
/// of low-rank adapters follow the biases. Gains and biases are exempt from weight decay.
///
/// The saving forward keeps, in four save levels, the attention's output and its log-sum-exp;
/// queries, keys, values; gate and up; the hidden state between the halves. Where nobody reads its
/// output, it leaves out the SwiGLU and the last product. The backward recomputes what needs no
/// product: norms, rotated queries and keys (only with query_key_norm), and the SwiGLU. Of adapters
/// nothing is kept: the backward computes A dropout(x) again.
template <Ops O>
class TransformerBlock {
 public:
  using Stream = typename O::Stream;

  /// \param frozen says that no parameter of the block is trained. The block ignores
  /// `config.frozen_blocks` and `full_attention_blocks`, which concern a whole transformer.
  /// \param layer is the block's number in the transformer, with which the names begin that the
  /// patterns of the configuration match.
  /// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
  explicit TransformerBlock(TransformerConfig const& config,
                            bool frozen = false,
                            std::int64_t layer = 1)
      : config_(config.resolved()), frozen_(frozen), places_(config_, layer) {}

  [[nodiscard]] TransformerConfig const& config() const noexcept { return config_; }
  [[nodiscard]] std::string name() const { return "transformer block"; }

  /// Whether \p other, made of the same configuration but for its number and window, does the same.
  [[nodiscard]] bool is_copy(TransformerBlock const& other) const {
    auto const ours = parameters();
    auto const theirs = other.parameters();
    return config_.sliding_window == other.config_.sliding_window &&
           std::equal(ours.begin(),
                      ours.end(),
                      theirs.begin(),
                      theirs.end(),
                      [](ParameterSpec const& a, ParameterSpec const& b) {
                        return a.tensor == b.tensor && a.frozen == b.frozen;
                      });
  }

  [[nodiscard]] ParameterTable parameters() const { return places_.table(config_, frozen_); }
  [[nodiscard]] TensorTable boundary(BatchShape shape) const {
    return {{"hidden", {shape.rows, shape.length, config_.hidden}, config_.storage}};
  }
  [[nodiscard]] TensorTable input(BatchShape shape) const { return boundary(shape); }
  [[nodiscard]] Footprint footprint(BatchShape shape) const {
    return detail::block_footprint<O>(config_, shape, adapted_width_);
  }
  [[nodiscard]] std::vector<Bytes> save_levels(BatchShape shape) const {
    return detail::block_save_levels(config_, shape);
  }
  /// Counts the products and the visible part of attention; see \ref detail::block_work.
  [[nodiscard]] FlopCount work(BatchShape shape) const {
    return detail::block_work(config_, places_, parameters(), shape);
  }

  void forward(ForwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto keep = ctx.saved();
    auto work = ctx.workspace();
    auto const saved = detail::BlockSaved(ctx.saving() ? keep : work, c, ctx.shape());
    auto const m =
        detail::BlockForward<O>(work, c, ctx.shape(), saved, ctx.saving(), adapted_width_);
    O const ops(ctx.stream(), m.scratch);
    detail::BlockMaps const maps(c, places_, ctx, ops, m.adapter);
    auto const& x = ctx.input(0);
    auto const epsilon = c.norm_epsilon;

    auto const found = ctx.found_level();
    bool const attends = found < detail::keeps_attention;
    if (found < detail::keeps_queries) {
      ops.rms_norm(m.normed, x, maps.weight(P::input_norm), epsilon);
      maps.project(saved.q, m.normed, P::q_proj, absent);
      maps.project(saved.k, m.normed, P::k_proj, absent);
      maps.project(saved.v, m.normed, P::v_proj, absent);
      if (attends || !c.query_key_norm) {
        rotate(ops, maps, m.rotated_q, m.rotated_k, saved);
      }
    }
    if (attends) {
      O(ctx.stream(), m.attention_scratch)
          .attention(
              saved.attended, saved.lse, m.rotated_q, m.rotated_k, saved.v, c.sliding_window);
    }
    if (found < detail::keeps_all) {
      maps.project_onto(saved.middle, saved.attended, P::o_proj, x, m.projected);
    }
    if (found < detail::keeps_products) {
      ops.rms_norm(m.normed, saved.middle, maps.weight(P::middle_norm), epsilon);
      maps.project(saved.gate, m.normed, P::gate_proj, absent);
      maps.project(saved.up, m.normed, P::up_proj, absent);
    }
    if (!ctx.wants_output()) {
      return;
    }
    ops.swiglu(m.activation, saved.gate, saved.up);
    maps.project_onto(ctx.output(0), m.activation, P::down_proj, saved.middle, m.projected);
  }

  void backward(BackwardContext<Stream>& ctx) const {
    auto const& c = config_;
    auto keep = ctx.saved();
    auto work = ctx.workspace();
    auto const saved = detail::BlockSaved(keep, c, ctx.shape());
    auto const m = detail::BlockBackward<O>(work, c, ctx.shape(), saved, adapted_width_);
    O const ops(ctx.stream(), m.scratch);
    detail::BlockMaps const maps(c, places_, ctx, ops, m.adapter);
    auto const epsilon = c.norm_epsilon;

    // y = middle + dropout(down_proj(activation))
    auto const& dy = ctx.output_gradient(0);
    auto const& dprojected = maps.behind_dropout(m.mlp_projected, dy, P::down_proj);
    maps.input_gradient(m.up, dprojected, P::down_proj, absent);
    ops.swiglu_backward(m.gate, m.up, m.activation, m.up, saved.gate, saved.up);
    maps.add_gradients(P::down_proj, dprojected, m.activation);
    // gate, up of norm(middle). `middle` holds the norm, then its gradient, then the gradient of
    // middle.
    if (maps.read_input({P::gate_proj, P::up_proj})) {
      ops.rms_norm(m.middle, saved.middle, maps.weight(P::middle_norm), epsilon);
    }
    maps.add_gradients(P::gate_proj, m.gate, m.middle);
    maps.add_gradients(P::up_proj, m.up, m.middle);
    maps.input_gradient(m.middle, m.gate, P::gate_proj, absent);
    maps.input_gradient(m.middle, m.up, P::up_proj, m.middle);
    ops.rms_norm_backward(m.middle,
                          maps.sum(P::middle_norm),
                          m.middle,
                          saved.middle,
                          maps.weight(P::middle_norm),
                          dy,
                          epsilon);

    // middle = x + dropout(o_proj(attended))
    auto const& dattended = maps.behind_dropout(m.attention_projected, m.middle, P::o_proj);
    maps.input_gradient(m.attended, dattended, P::o_proj, absent);
    maps.add_gradients(P::o_proj, dattended, saved.attended);
    if (c.query_key_norm) {
      rotate(ops, maps, m.rotated_q, m.rotated_k, saved);
    }
    O(ctx.stream(), m.attention_scratch)
        .attention_backward(m.q,
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
          d, norm ? maps.sum(p) : absent, d, projected, norm ? maps.weight(p) : absent, rotary_);
    };
    unrotate(P::q_norm, m.q, saved.q);
    unrotate(P::k_norm, m.k, saved.k);
    // q, k, v of norm(x)
    auto const& x = ctx.input(0);
    if (maps.read_input({P::q_proj, P::k_proj, P::v_proj})) {
      ops.rms_norm(m.normed, x, maps.weight(P::input_norm), epsilon);
    }
    maps.add_gradients(P::q_proj, m.q, m.normed);
    maps.add_gradients(P::k_proj, m.k, m.normed);
    maps.add_gradients(P::v_proj, m.v, m.normed);
    if (!ctx.input_gradient(0).present() && !maps.sum(P::input_norm).present()) {
      return;
    }
    maps.input_gradient(m.normed, m.q, P::q_proj, absent);
    maps.input_gradient(m.normed, m.k, P::k_proj, m.normed);
    maps.input_gradient(m.normed, m.v, P::v_proj, m.normed);
    ops.rms_norm_backward(ctx.input_gradient(0),
                          maps.sum(P::input_norm),
                          m.normed,
                          x,
                          maps.weight(P::input_norm),
                          m.middle,
                          epsilon);
  }

 private:
  using P = detail::BlockParameters;
  using Parameter = P::Parameter;

  template <class Maps>
  void rotate(O const& ops,
              Maps const& maps,
              DeviceTensor const& q,
              DeviceTensor const& k,
              detail::BlockSaved const& saved) const {
    bool const norm = config_.query_key_norm;
    ops.rotary(q, saved.q, norm ? maps.weight(P::q_norm) : absent, rotary_);
    ops.rotary(k, saved.k, norm ? maps.weight(P::k_norm) : absent, rotary_);
  }

  TransformerConfig config_;
  bool frozen_;
  P places_;
  std::int64_t adapted_width_ = places_.adapted_width(config_);
  RotaryOptions rotary_{config_.rope_theta,
                        config_.norm_epsilon,
                        config_.rope_scaling.blend(config_.rope_theta, config_.head_dim)};
};

}  // namespace roundpipe::nn
