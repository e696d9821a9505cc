// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/architectures/tensor_names.hpp>

#include <roundpipe/architectures/known_architectures.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace tensor_names_test {

namespace {

using namespace roundpipe;

ModelConfig small(std::string const& type) {
  ModelConfig config;
  config.model_type = type;
  auto& c = config.transformer;
  c.vocabulary = 11;
  c.hidden = 8;
  c.layers = 12;
  c.heads = 2;
  c.intermediate = 12;
  c.query_key_norm = type == "qwen3";
  c.attention_bias = type == "qwen2";
  c = c.resolved();
  return config;
}

/// The names of the parameters of the model itself.
std::set<std::string> parameters_of(nn::TransformerConfig const& config) {
  auto const model = nn::transformer<nn::HostOps<float>>(config);
  auto const blocks = form_blocks(describe(model, {1, 2}), false, StateType::fp32);
  std::set<std::string> names;
  blocks.for_each([&](BlockTensor parameter) { names.insert(blocks.name_of(parameter)); });
  return names;
}

void check_names(ModelConfig const& config) {
  TensorNames const names(config);
  std::set<std::string> ours;
  std::set<std::string> theirs;
  for (auto const& pair : names.pairs()) {
    CHECK(names.theirs(pair.ours) == pair.theirs);
    CHECK(names.ours(pair.theirs) == pair.ours);
    CHECK_FALSE(names.is_copy(pair.theirs));
    ours.insert(pair.ours);
    theirs.insert(pair.theirs);
  }
  CHECK(ours.size() == names.pairs().size());
  CHECK(theirs.size() == names.pairs().size());
  CHECK(ours == parameters_of(config.transformer));
}

}  // namespace

TEST_CASE("the names of every architecture are those of the model's parameters, both ways") {
  for (auto const& architecture : known_architectures()) {
    auto const type = std::string(architecture.model_type);
    CAPTURE(type);
    auto config = small(type);
    check_names(config);
    config.transformer.tied = true;
    check_names(config);
  }
  auto llama = small("llama");
  llama.transformer.attention_bias = llama.transformer.output_bias = true;
  check_names(llama);
  llama.transformer.mlp_bias = true;
  check_names(llama);
  auto qwen3 = small("qwen3");
  qwen3.transformer.attention_bias = qwen3.transformer.output_bias = true;
  check_names(qwen3);
}

TEST_CASE("names are those of the model hub's files") {
  TensorNames const names(small("qwen2"));
  CHECK(names.theirs("0.embed_tokens.weight") == "model.embed_tokens.weight");
  CHECK(names.theirs("1.input_layernorm.weight") == "model.layers.0.input_layernorm.weight");
  CHECK(names.theirs("12.self_attn.k_proj.bias") == "model.layers.11.self_attn.k_proj.bias");
  CHECK(names.theirs("13.norm.weight") == "model.norm.weight");
  CHECK(names.theirs("13.lm_head.weight") == "lm_head.weight");
  CHECK(names.ours("model.layers.10.mlp.down_proj.weight") == "11.mlp.down_proj.weight");
  for (auto const* const name : {"model.layers.12.mlp.down_proj.weight",
                                 "model.layers.00.mlp.down_proj.weight",
                                 "model.layers.-1.mlp.down_proj.weight",
                                 "model.layers.#.mlp.down_proj.weight",
                                 "model.layers.0.self_attn.o_proj.bias",
                                 "model.layers.0.self_attn.rotary_emb.inv_freq",
                                 "norm.weight",
                                 ""}) {
    CAPTURE(name);
    CHECK_FALSE(names.ours(name).has_value());
    CHECK_FALSE(names.is_copy(name));
  }
  auto const error = test::error_of([&] { (void)names.theirs("1.self_attn.o_proj.bias"); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find("1.self_attn.o_proj.bias") != std::string::npos);
}

TEST_CASE("the head of a tied model has the table of tokens, of which a file may hold a copy") {
  auto config = small("llama");
  TensorNames const untied(config);
  CHECK_FALSE(untied.is_copy("lm_head.weight"));
  config.transformer.tied = true;
  TensorNames const tied(config);
  CHECK(tied.is_copy("lm_head.weight"));
  CHECK_FALSE(tied.ours("lm_head.weight").has_value());
  CHECK(tied.pairs().size() + 1 == untied.pairs().size());
}

TEST_CASE("an architecture that is not known has no names") {
  auto const error = test::error_of([] { TensorNames const names(small("gpt2")); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message().find("'gpt2' is not known; known are llama, mistral, qwen2, qwen3") !=
        std::string::npos);
}

}  // namespace tensor_names_test
