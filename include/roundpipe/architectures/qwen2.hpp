// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Qwen2 and Qwen2.5, with biases of queries, keys and values (transformers:
/// Qwen2ForCausalLM).

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/architectures/config_fields.hpp>
#include <roundpipe/architectures/decoder_fields.hpp>

namespace roundpipe::architectures {

inline constexpr TensorName qwen2_tensors[] = {
    {embedding, "embed_tokens.weight", "model.embed_tokens.weight"},
    {block, "input_layernorm.weight", "model.layers.#.input_layernorm.weight"},
    {block, "self_attn.q_proj.weight", "model.layers.#.self_attn.q_proj.weight"},
    {block, "self_attn.k_proj.weight", "model.layers.#.self_attn.k_proj.weight"},
    {block, "self_attn.v_proj.weight", "model.layers.#.self_attn.v_proj.weight"},
    {block, "self_attn.o_proj.weight", "model.layers.#.self_attn.o_proj.weight"},
    {block, "self_attn.q_proj.bias", "model.layers.#.self_attn.q_proj.bias", has_attention_bias},
    {block, "self_attn.k_proj.bias", "model.layers.#.self_attn.k_proj.bias", has_attention_bias},
    {block, "self_attn.v_proj.bias", "model.layers.#.self_attn.v_proj.bias", has_attention_bias},
    {block, "post_attention_layernorm.weight", "model.layers.#.post_attention_layernorm.weight"},
    {block, "mlp.gate_proj.weight", "model.layers.#.mlp.gate_proj.weight"},
    {block, "mlp.up_proj.weight", "model.layers.#.mlp.up_proj.weight"},
    {block, "mlp.down_proj.weight", "model.layers.#.mlp.down_proj.weight"},
    {head, "norm.weight", "model.norm.weight"},
    {head, "lm_head.weight", "lm_head.weight", is_untied},
};

inline void read_qwen2(ConfigFields const& fields, ModelConfig& config) {
  auto& c = config.transformer;
  c.kv_heads = fields.size("num_key_value_heads", 32);
  c.head_dim = fields.size("head_dim", 0);
  c.attention_bias = true;
  read_late_windows(fields, c);
}

inline constexpr Architecture qwen2{"qwen2", "Qwen2ForCausalLM", read_qwen2, qwen2_tensors};

}  // namespace roundpipe::architectures
