// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The constants of a decoder-only transformer of the shapes of Llama, Qwen2, Qwen3 and
/// Mistral.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/nn/name_pattern.hpp>
#include <roundpipe/nn/rope_scaling.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace roundpipe::nn {

/// The constants that all layers of one transformer share. Three sizes have no default. A size of 0
/// selects the default in its comment.
struct TransformerConfig {
  std::int64_t vocabulary = 0;    ///< Tokens are 0 to vocabulary - 1.
  std::int64_t hidden = 0;        ///< The width of the boundary.
  std::int64_t layers = 1;        ///< Blocks; more of them start residual projections smaller.
  std::int64_t heads = 0;         ///< Query heads.
  std::int64_t kv_heads = 0;      ///< Key and value heads. Default: heads.
  std::int64_t head_dim = 0;      ///< Even. Default: hidden / heads.
  std::int64_t intermediate = 0;  ///< Default: 8/3 hidden, up to a multiple of 64 (Shazeer 2020).
  double rope_theta = 10000;      ///< Llama 3: 500000; Qwen3: 1000000.
  RopeScaling rope_scaling = {};  ///< Of the rotary frequencies; none by default.
  double norm_epsilon = 1e-5;
  bool query_key_norm = false;      ///< RMSNorm of each query and key head, as in Qwen3.
  bool attention_bias = false;      ///< Of queries, keys and values, as in Qwen2.
  bool output_bias = false;         ///< Of the attention's output, as with Llama's attention_bias.
  bool mlp_bias = false;            ///< Of gate, up and down, as with Llama's mlp_bias.
  std::int64_t sliding_window = 0;  ///< Positions that one attends to, its own included; 0: all.
  std::int64_t full_attention_blocks = 0;  ///< How many of the first blocks have no window.
  double dropout = 0;            ///< Rate in [0, 1), on the embedding and both residual branches.
  bool tied = false;             ///< The head uses the embedding's table.
  DType storage = DType::f32;    ///< Of boundaries and of tensors kept between operations.
  DType parameter = DType::f32;  ///< Of parameters.
  std::int32_t padding_label = -100;  ///< Positions with this label have no loss.
  std::int64_t loss_chunk = 1024;     ///< The number of positions whose logits exist at a time.
  double initial_deviation = 0.02;    ///< Of matrices; of residual projections: over sqrt(2
                                      ///< layers).
  bool frozen_embedding = false;      ///< Freezes the embedding's table, and a head tied to it.
  std::int64_t frozen_blocks = 0;     ///< How many of the first blocks are frozen.
  /// Patterns (\ref matches_name) of the names of further parameters that are frozen, as a
  /// trainer's `for_each_parameter` tells them: "0.embed_tokens.weight",
  /// "1.self_attn.q_proj.weight".
  std::vector<std::string> frozen_parameters = {};
  LoraConfig lora = {};  ///< Low-rank adapters, which freeze all other parameters; none by default.

  /// These constants with all defaults filled in.
  /// \throws Error (invalid_argument) for constants that do not describe a transformer.
  [[nodiscard]] TransformerConfig resolved() const;

  /// The width of the concatenated query heads. Precondition: resolved.
  [[nodiscard]] std::int64_t query_width() const noexcept { return heads * head_dim; }
  /// The width of the concatenated key (or value) heads. Precondition: resolved.
  [[nodiscard]] std::int64_t kv_width() const noexcept { return kv_heads * head_dim; }

  /// Whether the linear map \p name, such as "1.self_attn.q_proj", has a low-rank adapter.
  [[nodiscard]] bool adapts(std::string const& name) const {
    return lora.rank > 0 && any_matches_name(lora.targets, name);
  }
  /// Whether adapters or \ref frozen_parameters freeze the parameter \p name.
  [[nodiscard]] bool freezes(std::string const& name) const {
    return (lora.rank > 0 && !is_lora_parameter(name)) || any_matches_name(frozen_parameters, name);
  }
};

namespace detail {

inline void check_config_size(std::int64_t value, char const* name) {
  if (value < 1 || value > std::numeric_limits<std::int32_t>::max()) {
    throw Error(Errc::invalid_argument,
                "TransformerConfig::" + std::string(name) + " is " + std::to_string(value) +
                    ", but must be positive and fit 32 bits");
  }
}

inline void check_config_divides(std::int64_t divisor,
                                 char const* divisor_name,
                                 std::int64_t value,
                                 char const* name,
                                 char const* advice) {
  if (value % divisor != 0) {
    throw Error(Errc::invalid_argument,
                "TransformerConfig: " + std::string(divisor_name) + " = " +
                    std::to_string(divisor) + " does not divide " + name + " = " +
                    std::to_string(value) + advice);
  }
}

inline void check_config_blocks(std::int64_t value, char const* name, std::int64_t layers) {
  if (value < 0 || value > layers) {
    throw Error(Errc::invalid_argument,
                "TransformerConfig::" + std::string(name) + " is " + std::to_string(value) +
                    ", but must be from 0 to layers = " + std::to_string(layers));
  }
}

}  // namespace detail

inline TransformerConfig TransformerConfig::resolved() const {
  auto config = *this;
  detail::check_config_size(vocabulary, "vocabulary");
  detail::check_config_size(hidden, "hidden");
  detail::check_config_size(layers, "layers");
  detail::check_config_size(heads, "heads");
  detail::check_config_size(loss_chunk, "loss_chunk");
  if (kv_heads == 0) {
    config.kv_heads = heads;
  }
  detail::check_config_size(config.kv_heads, "kv_heads");
  detail::check_config_divides(config.kv_heads, "kv_heads", heads, "heads", "");
  if (head_dim == 0) {
    detail::check_config_divides(heads, "heads", hidden, "hidden", "; or name a head_dim");
    config.head_dim = hidden / heads;
  }
  detail::check_config_size(config.head_dim, "head_dim");
  if (config.head_dim % 2 != 0) {
    throw Error(Errc::invalid_argument,
                "TransformerConfig::head_dim is " + std::to_string(config.head_dim) +
                    ", but rotary embedding rotates pairs: it must be even");
  }
  if (intermediate == 0) {
    config.intermediate = (hidden * 8 / 3 + 63) / 64 * 64;
  }
  detail::check_config_size(config.intermediate, "intermediate");
  require(dropout >= 0 && dropout < 1,
          Errc::invalid_argument,
          "TransformerConfig::dropout must be in [0, 1)");
  require(std::isfinite(rope_theta) && rope_theta > 0,
          Errc::invalid_argument,
          "TransformerConfig::rope_theta must be positive");
  rope_scaling.check();
  require(rope_scaling.kind != RopeScaling::Kind::yarn || rope_theta > 1,
          Errc::invalid_argument,
          "TransformerConfig::rope_theta must be greater than 1 for yarn");
  require(std::isfinite(norm_epsilon) && norm_epsilon > 0,
          Errc::invalid_argument,
          "TransformerConfig::norm_epsilon must be positive");
  require(std::isfinite(initial_deviation) && initial_deviation >= 0,
          Errc::invalid_argument,
          "TransformerConfig::initial_deviation must not be negative");
  require(is_floating(storage) && is_floating(parameter),
          Errc::invalid_argument,
          "TransformerConfig::storage and parameter must be f64, f32, bf16 or f16");
  if (sliding_window < 0 || sliding_window > std::numeric_limits<std::int32_t>::max()) {
    throw Error(Errc::invalid_argument,
                "TransformerConfig::sliding_window is " + std::to_string(sliding_window) +
                    ", but must not be negative, and fit 32 bits");
  }
  detail::check_config_blocks(frozen_blocks, "frozen_blocks", layers);
  detail::check_config_blocks(full_attention_blocks, "full_attention_blocks", layers);
  config.lora = lora.resolved();
  return config;
}

}  // namespace roundpipe::nn
