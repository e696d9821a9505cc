// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The parameters of a transformer block: their table, and where each stands in it.

#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace roundpipe::nn::detail {

/// The table of a block's parameters. What the configuration leaves out has no place in it.
class BlockParameters {
 public:
  /// All that a block may have, in the order of the table. Projections have the numbers of their
  /// random streams.
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
    q_bias,
    k_bias,
    v_bias,
    o_bias,
    gate_bias,
    up_bias,
    down_bias,
    parameter_count,
  };

  /// \pre \p c is resolved.
  explicit BlockParameters(TransformerConfig const& c) {
    std::size_t place = 0;
    for (std::size_t p = 0; p < parameter_count; ++p) {
      places_[p] = exists(c, static_cast<Parameter>(p)) ? place++ : nowhere;
    }
  }

  [[nodiscard]] bool has(Parameter p) const noexcept { return places_[p] != nowhere; }
  /// The place of \p p, which the block has, in the table.
  [[nodiscard]] std::size_t operator[](Parameter p) const noexcept {
    assert(has(p));
    return places_[p];
  }
  /// The bias of a projection.
  [[nodiscard]] static Parameter bias_of(Parameter projection) noexcept {
    switch (projection) {
      case q_proj:
        return q_bias;
      case k_proj:
        return k_bias;
      case v_proj:
        return v_bias;
      case o_proj:
        return o_bias;
      case gate_proj:
        return gate_bias;
      case up_proj:
        return up_bias;
      default:
        assert(projection == down_proj);
        return down_bias;
    }
  }

  /// The table for the \p c of the constructor.
  [[nodiscard]] ParameterTable table(TransformerConfig const& c, bool frozen) const {
    auto const deviation = static_cast<float>(c.initial_deviation);
    // Each block adds two terms to the residual stream (Radford et al. 2019, section 2.3).
    auto const residual =
        static_cast<float>(c.initial_deviation / std::sqrt(2.0 * static_cast<double>(c.layers)));
    ParameterTable table;
    auto const matrix = [&](char const* name, std::int64_t out, std::int64_t in, float d) {
      table.push_back(
          {{name, {out, in}, c.parameter}, Initial::normal(d), DecayGroup::decayed, {}, frozen});
    };
    auto const vector = [&](Parameter p, char const* name, std::int64_t width, Initial initial) {
      if (has(p)) {
        table.push_back({{name, {width}, c.parameter}, initial, DecayGroup::exempt, {}, frozen});
      }
    };
    auto const gain = [&](Parameter p, char const* name, std::int64_t width) {
      vector(p, name, width, Initial::ones());
    };
    auto const bias = [&](Parameter p, char const* name, std::int64_t width) {
      vector(p, name, width, Initial::zeros());
    };
    gain(input_norm, "input_layernorm.weight", c.hidden);
    matrix("self_attn.q_proj.weight", c.query_width(), c.hidden, deviation);
    matrix("self_attn.k_proj.weight", c.kv_width(), c.hidden, deviation);
    matrix("self_attn.v_proj.weight", c.kv_width(), c.hidden, deviation);
    matrix("self_attn.o_proj.weight", c.hidden, c.query_width(), residual);
    gain(middle_norm, "post_attention_layernorm.weight", c.hidden);
    matrix("mlp.gate_proj.weight", c.intermediate, c.hidden, deviation);
    matrix("mlp.up_proj.weight", c.intermediate, c.hidden, deviation);
    matrix("mlp.down_proj.weight", c.hidden, c.intermediate, residual);
    gain(q_norm, "self_attn.q_norm.weight", c.head_dim);
    gain(k_norm, "self_attn.k_norm.weight", c.head_dim);
    bias(q_bias, "self_attn.q_proj.bias", c.query_width());
    bias(k_bias, "self_attn.k_proj.bias", c.kv_width());
    bias(v_bias, "self_attn.v_proj.bias", c.kv_width());
    bias(o_bias, "self_attn.o_proj.bias", c.hidden);
    bias(gate_bias, "mlp.gate_proj.bias", c.intermediate);
    bias(up_bias, "mlp.up_proj.bias", c.intermediate);
    bias(down_bias, "mlp.down_proj.bias", c.hidden);
    return table;
  }

 private:
  static constexpr auto nowhere = static_cast<std::size_t>(-1);

  [[nodiscard]] static bool exists(TransformerConfig const& c, Parameter p) noexcept {
    switch (p) {
      case q_norm:
      case k_norm:
        return c.query_key_norm;
      case q_bias:
      case k_bias:
      case v_bias:
        return c.attention_bias;
      case o_bias:
        return c.output_bias;
      case gate_bias:
      case up_bias:
      case down_bias:
        return c.mlp_bias;
      default:
        return true;
    }
  }

  std::array<std::size_t, parameter_count> places_{};
};

}  // namespace roundpipe::nn::detail
