// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The parameters of a transformer block: their table, and where each stands in it.

#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/low_rank_adapter.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

namespace roundpipe::nn::detail {

/// The table of a block's parameters. What the configuration leaves out has no place in it.
class BlockParameters {
 public:
  /// All that a block may have, in the order of the table. Projections have the numbers of their
  /// random streams, and their adapters those of the first matrix.
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
    q_lora_a,
    down_lora_b = q_lora_a + 13,  // two matrices for each projection
    parameter_count,
  };
  static constexpr Parameter projections[] = {
      q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj};

  /// \param layer is the number of the block in the transformer, with which the names begin that
  /// patterns match.
  /// \pre \p c is resolved.
  BlockParameters(TransformerConfig const& c, std::int64_t layer)
      : prefix_(std::to_string(layer) + ".") {
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
  /// Whether a projection has a low-rank adapter.
  [[nodiscard]] bool adapts(Parameter projection) const noexcept {
    return has(lora_a_of(projection));
  }
  /// The bias of a projection.
  [[nodiscard]] static Parameter bias_of(Parameter projection) noexcept {
    return static_cast<Parameter>(q_bias + number_of(projection));
  }
  /// The matrix A, or B, of a projection's adapter.
  [[nodiscard]] static Parameter lora_a_of(Parameter projection) noexcept {
    return static_cast<Parameter>(q_lora_a + 2 * number_of(projection));
  }
  [[nodiscard]] static Parameter lora_b_of(Parameter projection) noexcept {
    return static_cast<Parameter>(lora_a_of(projection) + 1);
  }
  /// The extents of a projection's weight: [out, in].
  [[nodiscard]] static std::array<std::int64_t, 2> extents_of(TransformerConfig const& c,
                                                              Parameter projection) noexcept {
    switch (projection) {
      case q_proj:
        return {c.query_width(), c.hidden};
      case k_proj:
      case v_proj:
        return {c.kv_width(), c.hidden};
      case o_proj:
        return {c.hidden, c.query_width()};
      case gate_proj:
      case up_proj:
        return {c.intermediate, c.hidden};
      default:
        assert(projection == down_proj);
        return {c.hidden, c.intermediate};
    }
  }
  /// The widest input of a projection that has an adapter; 0: none has one.
  [[nodiscard]] std::int64_t adapted_width(TransformerConfig const& c) const noexcept {
    std::int64_t width = 0;
    for (auto const p : projections) {
      width = adapts(p) ? std::max(width, extents_of(c, p)[1]) : width;
    }
    return width;
  }

  /// The table for the \p c of the constructor.
  [[nodiscard]] ParameterTable table(TransformerConfig const& c, bool frozen) const {
    auto const deviation = static_cast<float>(c.initial_deviation);
    // Each block adds two terms to the residual stream (Radford et al. 2019, section 2.3).
    auto const residual =
        static_cast<float>(c.initial_deviation / std::sqrt(2.0 * static_cast<double>(c.layers)));
    ParameterTable table;
    auto const add = [&](std::string name, Shape shape, Initial initial, DecayGroup decay) {
      bool const is_frozen = frozen || c.freezes(prefix_ + name);
      table.push_back(
          {{std::move(name), std::move(shape), c.parameter}, initial, decay, {}, is_frozen});
    };
    auto const matrix = [&](Parameter p, float d) {
      auto const [out, in] = extents_of(c, p);
      add(name_of(p) + ".weight", {out, in}, Initial::normal(d), DecayGroup::decayed);
    };
    auto const gain = [&](Parameter p, char const* name, std::int64_t width) {
      if (has(p)) {
        add(name, {width}, Initial::ones(), DecayGroup::exempt);
      }
    };
    gain(input_norm, "input_layernorm.weight", c.hidden);
    matrix(q_proj, deviation);
    matrix(k_proj, deviation);
    matrix(v_proj, deviation);
    matrix(o_proj, residual);
    gain(middle_norm, "post_attention_layernorm.weight", c.hidden);
    matrix(gate_proj, deviation);
    matrix(up_proj, deviation);
    matrix(down_proj, residual);
    gain(q_norm, "self_attn.q_norm.weight", c.head_dim);
    gain(k_norm, "self_attn.k_norm.weight", c.head_dim);
    for (auto const p : projections) {
      if (has(bias_of(p))) {
        add(name_of(p) + ".bias", {extents_of(c, p)[0]}, Initial::zeros(), DecayGroup::exempt);
      }
    }
    for (auto const p : projections) {
      if (adapts(p)) {
        auto const [out, in] = extents_of(c, p);
        for (auto& spec : adapter_parameters(c, name_of(p), out, in)) {
          spec.frozen = frozen || c.freezes(prefix_ + spec.tensor.name);
          table.push_back(std::move(spec));
        }
      }
    }
    return table;
  }

 private:
  static constexpr auto nowhere = static_cast<std::size_t>(-1);

  [[nodiscard]] static std::size_t number_of(Parameter projection) noexcept {
    auto const* const found = std::find(std::begin(projections), std::end(projections), projection);
    assert(found != std::end(projections));
    return static_cast<std::size_t>(found - std::begin(projections));
  }
  [[nodiscard]] static std::string name_of(Parameter projection) {
    static constexpr char const* names[] = {"self_attn.q_proj",
                                            "self_attn.k_proj",
                                            "self_attn.v_proj",
                                            "self_attn.o_proj",
                                            "mlp.gate_proj",
                                            "mlp.up_proj",
                                            "mlp.down_proj"};
    return names[number_of(projection)];
  }

  [[nodiscard]] bool exists(TransformerConfig const& c, Parameter p) const {
    if (p >= q_lora_a) {
      return c.adapts(prefix_ + name_of(projections[(p - q_lora_a) / 2]));
    }
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

  std::string prefix_;
  std::array<std::size_t, parameter_count> places_{};
};

}  // namespace roundpipe::nn::detail
