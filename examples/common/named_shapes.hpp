// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The shapes of published models, by name.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/nn/rope_scaling.hpp>

#include <map>
#include <string>

namespace examples {

/// From the models' published config.json files.
[[nodiscard]] inline std::map<std::string, roundpipe::ModelConfig> const& named_shapes() {
  static std::map<std::string, roundpipe::ModelConfig> const shapes{
      {"qwen3-0.6b",
       {.model_type = "qwen3",
        .transformer = {.vocabulary = 151936,
                        .hidden = 1024,
                        .layers = 28,
                        .heads = 16,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .intermediate = 3072,
                        .rope_theta = 1e6,
                        .norm_epsilon = 1e-6,
                        .query_key_norm = true,
                        .tied = true},
        .longest_context = 40960}},
      {"qwen3-1.7b",
       {.model_type = "qwen3",
        .transformer = {.vocabulary = 151936,
                        .hidden = 2048,
                        .layers = 28,
                        .heads = 16,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .intermediate = 6144,
                        .rope_theta = 1e6,
                        .norm_epsilon = 1e-6,
                        .query_key_norm = true,
                        .tied = true},
        .longest_context = 40960}},
      {"qwen3-32b",
       {.model_type = "qwen3",
        .transformer = {.vocabulary = 151936,
                        .hidden = 5120,
                        .layers = 64,
                        .heads = 64,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .intermediate = 25600,
                        .rope_theta = 1e6,
                        .norm_epsilon = 1e-6,
                        .query_key_norm = true},
        .longest_context = 40960}},
      {"llama3.1-8b",
       {.model_type = "llama",
        .transformer = {.vocabulary = 128256,
                        .hidden = 4096,
                        .layers = 32,
                        .heads = 32,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .intermediate = 14336,
                        .rope_theta = 5e5,
                        .rope_scaling = {.kind = roundpipe::nn::RopeScaling::Kind::llama3,
                                         .factor = 8,
                                         .original_max_position_embeddings = 8192},
                        .norm_epsilon = 1e-5},
        .longest_context = 131072}},
      {"llama3.2-1b",
       {.model_type = "llama",
        .transformer = {.vocabulary = 128256,
                        .hidden = 2048,
                        .layers = 16,
                        .heads = 32,
                        .kv_heads = 8,
                        .head_dim = 64,
                        .intermediate = 8192,
                        .rope_theta = 5e5,
                        .rope_scaling = {.kind = roundpipe::nn::RopeScaling::Kind::llama3,
                                         .factor = 32,
                                         .original_max_position_embeddings = 8192},
                        .norm_epsilon = 1e-5,
                        .tied = true},
        .longest_context = 131072}},
  };
  return shapes;
}

/// Their names, for messages: "llama3.1-8b, qwen3-0.6b, ...".
[[nodiscard]] inline std::string shape_names() {
  std::string names;
  for (auto const& [name, config] : named_shapes()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace examples
