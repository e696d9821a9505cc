// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Mistral, with a sliding window in all blocks (transformers: MistralForCausalLM).

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/architectures/config_fields.hpp>
#include <roundpipe/architectures/decoder_fields.hpp>

namespace roundpipe::architectures {

inline constexpr TensorName mistral_tensors[] = {
    {embedding, "embed_tokens.weight", "model.embed_tokens.weight"},
    {block, "input_layernorm.weight", "model.layers.#.input_layernorm.weight"},
    {block, "self_attn.q_proj.weight", "model.layers.#.self_attn.q_proj.weight"},
    {block, "self_attn.k_proj.weight", "model.layers.#.self_attn.k_proj.weight"},
    {block, "self_attn.v_proj.weight", "model.layers.#.self_attn.v_proj.weight"},
    {block, "self_attn.o_proj.weight", "model.layers.#.self_attn.o_proj.weight"},
    {block, "post_attention_layernorm.weight", "model.layers.#.post_attention_layernorm.weight"},
    {block, "mlp.gate_proj.weight", "model.layers.#.mlp.gate_proj.weight"},
    {block, "mlp.up_proj.weight", "model.layers.#.mlp.up_proj.weight"},
    {block, "mlp.down_proj.weight", "model.layers.#.mlp.down_proj.weight"},
    {head, "norm.weight", "model.norm.weight"},
    {head, "lm_head.weight", "lm_head.weight", is_untied},
};

inline void read_mistral(ConfigFields const& fields, ModelConfig& config) {
  auto& c = config.transformer;
  c.kv_heads = fields.size("num_key_value_heads", 8);
  c.head_dim = fields.size("head_dim", 0);
  auto const window = fields.is_null("sliding_window") ? 0 : fields.size("sliding_window", 4096);
  read_windows(fields, window, 0, c);
  if (c.full_attention_blocks > 0) {  // transformers gives every block the window
    throw fields.unsupported("layer_types", "sliding_attention for all blocks");
  }
}

inline constexpr Architecture mistral{
    "mistral", "MistralForCausalLM", read_mistral, mistral_tensors};

}  // namespace roundpipe::architectures
