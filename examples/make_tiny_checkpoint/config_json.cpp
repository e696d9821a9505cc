// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "config_json.hpp"

#include <common/command_line.hpp>
#include <roundpipe/architectures/known_architectures.hpp>
#include <roundpipe/nn/rope_scaling.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace make_tiny_checkpoint {

namespace {

using Json = nlohmann::ordered_json;

Json rope_json(roundpipe::nn::RopeScaling const& scaling) {
  using Kind = roundpipe::nn::RopeScaling::Kind;
  switch (scaling.kind) {
    case Kind::none:
      return nullptr;
    case Kind::linear:
      return {{"rope_type", "linear"}, {"factor", scaling.factor}};
    case Kind::llama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_max_position_embeddings",
               static_cast<std::int64_t>(scaling.original_max_position_embeddings)}};
    case Kind::yarn:
      return {{"rope_type", "yarn"},
              {"factor", scaling.factor},
              {"original_max_position_embeddings",
               static_cast<std::int64_t>(scaling.original_max_position_embeddings)}};
  }
  return nullptr;
}

}  // namespace

std::string torch_name(roundpipe::DType type) {
  using enum roundpipe::DType;
  return type == bf16 ? "bfloat16" : type == f16 ? "float16" : "float32";
}

Json config_json(roundpipe::ModelConfig const& config) {
  auto const& type = config.model_type;
  auto const* const architecture = roundpipe::find_architecture(type);
  if (architecture == nullptr) {
    examples::refuse("the architecture '" + type + "' is not known; known are " +
                     roundpipe::architecture_names());
  }
  auto const c = config.transformer.resolved();
  bool const is_qwen = type == "qwen2" || type == "qwen3";
  if (c.sliding_window > 0 && !is_qwen && type != "mistral") {
    examples::refuse(type + " has no sliding window");
  }
  if (c.output_bias && type != "llama" && type != "qwen3") {
    examples::refuse(type + " has no choice of biases");
  }
  Json json = {{"architectures", {architecture->class_name}},
               {"model_type", type},
               {"vocab_size", c.vocabulary},
               {"hidden_size", c.hidden},
               {"num_hidden_layers", c.layers},
               {"num_attention_heads", c.heads},
               {"num_key_value_heads", c.kv_heads},
               {"head_dim", c.head_dim},
               {"intermediate_size", c.intermediate},
               {"hidden_act", "silu"},
               {"max_position_embeddings", config.longest_context},
               {"rope_theta", c.rope_theta},
               {"rope_scaling", rope_json(c.rope_scaling)},
               {"rms_norm_eps", c.norm_epsilon},
               {"initializer_range", c.initial_deviation},
               {"tie_word_embeddings", c.tied}};
  if (type == "llama" || type == "qwen3") {
    json["attention_bias"] = c.output_bias;
  }
  if (type == "llama") {
    json["mlp_bias"] = c.mlp_bias;
  }
  Json window = c.sliding_window > 0 ? Json(c.sliding_window) : Json(nullptr);
  if (type == "mistral") {
    json["sliding_window"] = window;
  } else if (is_qwen) {
    json["use_sliding_window"] = c.sliding_window > 0;
    json["sliding_window"] = window;
    json["max_window_layers"] = c.full_attention_blocks;
  }
  // No token ends a text: what a model of random weights calls its end means nothing.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  json["pad_token_id"] = nullptr;
  json["dtype"] = torch_name(config.dtype.value_or(roundpipe::DType::f32));
  return json;
}

}  // namespace make_tiny_checkpoint
