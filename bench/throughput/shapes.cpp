// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <throughput/shapes.hpp>

#include <roundpipe/core/error.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <map>

namespace throughput {

namespace {

using roundpipe::nn::TransformerConfig;

/// From the models' published config.json files.
std::map<std::string, TransformerConfig> const& named_shapes() {
  static std::map<std::string, TransformerConfig> const shapes{
      {"qwen3-1.7b",
       {.vocabulary = 151936,
        .hidden = 2048,
        .layers = 28,
        .heads = 16,
        .kv_heads = 8,
        .head_dim = 128,
        .intermediate = 6144,
        .rope_theta = 1e6,
        .norm_epsilon = 1e-6,
        .query_key_norm = true,
        .tied = true}},
      {"llama3.1-8b",
       {.vocabulary = 128256,
        .hidden = 4096,
        .layers = 32,
        .heads = 32,
        .kv_heads = 8,
        .head_dim = 128,
        .intermediate = 14336,
        .rope_theta = 5e5,
        .norm_epsilon = 1e-5}},
      {"qwen3-32b",
       {.vocabulary = 151936,
        .hidden = 5120,
        .layers = 64,
        .heads = 64,
        .kv_heads = 8,
        .head_dim = 128,
        .intermediate = 25600,
        .rope_theta = 1e6,
        .norm_epsilon = 1e-6,
        .query_key_norm = true}},
  };
  return shapes;
}

TransformerConfig read_shape(std::string const& path) {
  std::ifstream file(path);
  if (!file) {
    std::string names;
    for (auto const& name : known_shapes()) {
      names += (names.empty() ? "" : ", ") + name;
    }
    throw roundpipe::Error(roundpipe::Errc::invalid_argument,
                           "--shape: '" + path + "' is no file, and none of " + names);
  }
  try {
    auto const json = nlohmann::json::parse(file);
    TransformerConfig config;
    config.vocabulary = json.at("vocab_size").get<std::int64_t>();
    config.hidden = json.at("hidden_size").get<std::int64_t>();
    config.layers = json.at("num_hidden_layers").get<std::int64_t>();
    config.heads = json.at("num_attention_heads").get<std::int64_t>();
    config.kv_heads = json.value("num_key_value_heads", std::int64_t{0});
    config.head_dim = json.value("head_dim", std::int64_t{0});
    config.intermediate = json.at("intermediate_size").get<std::int64_t>();
    config.rope_theta = json.value("rope_theta", 1e4);
    config.norm_epsilon = json.value("rms_norm_eps", 1e-5);
    config.tied = json.value("tie_word_embeddings", false);
    config.query_key_norm = json.value("model_type", std::string{}) == "qwen3";
    return config;
  } catch (nlohmann::json::exception const& error) {
    throw roundpipe::Error(roundpipe::Errc::invalid_argument,
                           "--shape: " + path + ": " + error.what());
  }
}

}  // namespace

std::vector<std::string> known_shapes() {
  std::vector<std::string> names;
  for (auto const& [name, config] : named_shapes()) {
    names.push_back(name);
  }
  return names;
}

roundpipe::nn::TransformerConfig find_shape(std::string const& name) {
  auto const& shapes = named_shapes();
  auto const found = shapes.find(name);
  return found != shapes.end() ? found->second : read_shape(name);
}

}  // namespace throughput
