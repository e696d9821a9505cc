// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/architectures/model_config.hpp>

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/nn/rope_scaling.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <string>

namespace model_config_test {

namespace {

using namespace roundpipe;
using Json = nlohmann::json;
using Kind = nn::RopeScaling::Kind;

ModelConfig read(Json const& json) {
  return read_model_config(json, "m/config.json");
}

/// A configuration of each architecture, with what all of them have.
Json small(std::string const& type) {
  return {{"model_type", type},
          {"vocab_size", 100},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 512}};
}

Json with(Json json, Json const& more) {
  json.update(more);
  return json;
}

void check_refused(Errc code, Json const& json, std::string const& words) {
  auto const error = test::error_of([&] { static_cast<void>(read(json)); });
  INFO(error.message());
  CHECK(error.code() == code);
  CHECK(error.message().starts_with("'m/config.json': "));
  CHECK(error.message().find(words) != std::string::npos);
}
void check_unsupported(Json const& json, std::string const& words) {
  check_refused(Errc::unsupported, json, words);
}
void check_bad(Json const& json, std::string const& words) {
  check_refused(Errc::bad_file, json, words);
}

}  // namespace

TEST_CASE("the configuration of Llama 3.1 8B") {
  auto const config = read(Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256})"));
  CHECK(config.model_type == "llama");
  CHECK(config.longest_context == 131072);
  CHECK(config.dtype == DType::bf16);
  auto const& c = config.transformer;
  CHECK(c.vocabulary == 128256);
  CHECK(c.hidden == 4096);
  CHECK(c.layers == 32);
  CHECK(c.heads == 32);
  CHECK(c.kv_heads == 8);
  CHECK(c.head_dim == 128);
  CHECK(c.intermediate == 14336);
  CHECK(c.norm_epsilon == 1e-5);
  CHECK(c.rope_theta == 500000);
  CHECK(c.rope_scaling == nn::RopeScaling{.kind = Kind::llama3,
                                          .factor = 8,
                                          .original_max_position_embeddings = 8192,
                                          .low_freq_factor = 1,
                                          .high_freq_factor = 4});
  CHECK_FALSE(c.tied);
  CHECK_FALSE(c.query_key_norm);
  CHECK_FALSE(c.attention_bias);
  CHECK_FALSE(c.output_bias);
  CHECK_FALSE(c.mlp_bias);
  CHECK(c.sliding_window == 0);
  CHECK(c.storage == DType::f32);
  CHECK(c.parameter == DType::f32);
}

TEST_CASE("the configuration of Llama 2 7B, which says less") {
  auto const config = read(Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
    "tie_word_embeddings": false, "torch_dtype": "float16", "vocab_size": 32000})"));
  CHECK(config.dtype == DType::f16);
  CHECK(config.transformer.kv_heads == 32);
  CHECK(config.transformer.rope_theta == 10000);
  CHECK(config.transformer.rope_scaling.kind == Kind::none);
}

TEST_CASE("the configuration of Mistral 7B") {
  auto json = Json::parse(R"({
    "architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32000})");
  CHECK(read(json).transformer.sliding_window == 4096);
  CHECK(read(json).transformer.full_attention_blocks == 0);
  json["sliding_window"] = nullptr;  // version 0.2 and later
  CHECK(read(json).transformer.sliding_window == 0);
  json.erase("sliding_window");
  CHECK(read(json).transformer.sliding_window == 4096);
}

TEST_CASE("the configuration of Qwen2.5 7B") {
  auto const json = Json::parse(R"({
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu",
    "hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 131072,
    "max_window_layers": 28, "model_type": "qwen2", "num_attention_heads": 28,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "use_mrope": false, "use_sliding_window": false,
    "vocab_size": 152064})");
  auto const& c = read(json).transformer;
  CHECK(c.attention_bias);
  CHECK_FALSE(c.output_bias);
  CHECK_FALSE(c.mlp_bias);
  CHECK(c.head_dim == 128);
  CHECK(c.norm_epsilon == 1e-6);
  CHECK(c.rope_theta == 1e6);
  CHECK(c.sliding_window == 0);
  auto const stretched = read(
      with(json,
           {{"rope_scaling",
             {{"factor", 4.0}, {"original_max_position_embeddings", 32768}, {"type", "yarn"}}}}));
  CHECK(stretched.transformer.rope_theta == 1e6);
  CHECK(
      stretched.transformer.rope_scaling ==
      nn::RopeScaling{.kind = Kind::yarn, .factor = 4, .original_max_position_embeddings = 32768});
}

TEST_CASE("the configuration of Qwen3 1.7B") {
  auto const config = read(Json::parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_sliding_window": false,
    "vocab_size": 151936})"));
  auto const& c = config.transformer;
  CHECK(c.query_key_norm);
  CHECK(c.tied);
  CHECK(c.head_dim == 128);
  CHECK(c.kv_heads == 8);
  CHECK(c.rope_theta == 1e6);
  CHECK_FALSE(c.attention_bias);
  CHECK(c.sliding_window == 0);
}

TEST_CASE("what a file does not say has the architecture's default") {
  auto json = small("llama");
  json.erase("num_key_value_heads");
  CHECK(read(json).transformer.kv_heads == 4);
  CHECK(read(json).transformer.norm_epsilon == 1e-6);
  CHECK(read(json).transformer.head_dim == 16);
  CHECK_FALSE(read(json).dtype.has_value());
  json["num_key_value_heads"] = nullptr;
  json["head_dim"] = nullptr;
  CHECK(read(json).transformer.kv_heads == 4);
  CHECK(read(json).transformer.head_dim == 16);
  CHECK(read(small("qwen3")).transformer.head_dim == 128);
  CHECK(read(small("qwen2")).transformer.head_dim == 16);
  auto wide = with(small("mistral"), {{"num_attention_heads", 16}, {"head_dim", 8}});
  wide.erase("num_key_value_heads");
  CHECK(read(wide).transformer.kv_heads == 8);
  CHECK(read(wide).transformer.head_dim == 8);
}

TEST_CASE("biases are those that transformers gives to each architecture") {
  auto const biases = [](Json const& json) {
    auto const c = read(json).transformer;
    return std::string(c.attention_bias ? "q" : "-") + (c.output_bias ? "o" : "-") +
           (c.mlp_bias ? "m" : "-");
  };
  Json const asked{{"attention_bias", true}, {"mlp_bias", true}};
  CHECK(biases(small("llama")) == "---");
  CHECK(biases(with(small("llama"), asked)) == "qom");
  CHECK(biases(with(small("qwen3"), asked)) == "qo-");
  CHECK(biases(with(small("qwen2"), asked)) == "q--");
  CHECK(biases(small("qwen2")) == "q--");
  CHECK(biases(with(small("mistral"), asked)) == "---");
}

TEST_CASE("Qwen's windows begin at a block, or are listed block by block") {
  auto const windows = [](Json const& more) {
    auto const c = read(with(small("qwen2"), more)).transformer;
    return std::to_string(c.sliding_window) + " from " + std::to_string(c.full_attention_blocks);
  };
  CHECK(windows({{"sliding_window", 32}, {"max_window_layers", 2}}) == "0 from 0");
  Json used{{"use_sliding_window", true}, {"sliding_window", 32}, {"max_window_layers", 2}};
  CHECK(windows(used) == "32 from 2");
  CHECK(windows(with(used, {{"max_window_layers", 0}})) == "32 from 0");
  CHECK(windows(with(used, {{"max_window_layers", 4}})) == "0 from 0");
  CHECK(windows(with(used, {{"max_window_layers", 28}})) == "0 from 0");
  CHECK(windows(with(used, {{"sliding_window", nullptr}})) == "0 from 0");
  auto const full = "full_attention";
  auto const slides = "sliding_attention";
  CHECK(windows(with(used, {{"layer_types", {full, full, full, slides}}})) == "32 from 3");
  CHECK(windows(with(used, {{"layer_types", {full, full, full, full}}})) == "0 from 0");
  CHECK(windows({{"layer_types", {full, full, full, full}}}) == "0 from 0");
  auto const qwen = with(small("qwen3"), used);
  check_unsupported(with(qwen, {{"layer_types", {full, slides, full, slides}}}), "layer_types");
  check_unsupported(with(qwen, {{"layer_types", {full, full, full, "chunked_attention"}}}),
                    "supported is full_attention for the first blocks");
  check_bad(with(qwen, {{"layer_types", {full, full}}}), "layer_types has 2 elements");
  check_bad(with(qwen, {{"layer_types", {full, full, 1, 2}}}), "must be a list of strings");
  check_bad(with(qwen, {{"layer_types", "full"}}), "must be a list of strings");
  check_bad(with(small("llama"), {{"layer_types", {full, full, full, slides}}}),
            "there is no sliding_window");
  check_unsupported(with(small("mistral"), {{"layer_types", {full, full, full, slides}}}),
                    "sliding_attention for all blocks");
  CHECK(read(with(small("mistral"), {{"layer_types", {slides, slides, slides, slides}}}))
            .transformer.sliding_window == 4096);
}

TEST_CASE("rotary embeddings of older and of newer files") {
  auto const rope = [](Json const& more) { return read(with(small("llama"), more)).transformer; };
  CHECK(rope({{"rope_theta", 500}}).rope_theta == 500);
  CHECK(rope({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 700.0}}}}).rope_theta ==
        700);
  CHECK(rope({{"rope_theta", 500}, {"rope_parameters", Json::object()}}).rope_theta == 500);
  auto const linear =
      rope({{"rope_theta", 500}, {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}});
  CHECK(linear.rope_theta == 500);
  CHECK(linear.rope_scaling == nn::RopeScaling{.kind = Kind::linear, .factor = 2});
  auto const yarn = rope({{"rope_parameters",
                           {{"rope_type", "yarn"},
                            {"rope_theta", 900},
                            {"factor", nullptr},
                            {"original_max_position_embeddings", 128},
                            {"attention_factor", 1.5},
                            {"beta_fast", 16},
                            {"beta_slow", 2},
                            {"mscale", 0.5},
                            {"mscale_all_dim", 0.25},
                            {"truncate", false}}}});
  CHECK(yarn.rope_theta == 900);
  CHECK(yarn.rope_scaling == nn::RopeScaling{.kind = Kind::yarn,
                                             .factor = 4,  // 512 / 128
                                             .original_max_position_embeddings = 128,
                                             .beta_fast = 16,
                                             .beta_slow = 2,
                                             .attention_factor = 1.5,
                                             .mscale = 0.5,
                                             .mscale_all_dim = 0.25,
                                             .truncate = false});
  Json const plain{{"rope_type", "yarn"}, {"factor", 4}};
  CHECK(rope({{"rope_scaling", plain}}).rope_scaling.original_max_position_embeddings == 512);
  CHECK(rope({{"rope_scaling", plain}, {"original_max_position_embeddings", 64}})
            .rope_scaling.original_max_position_embeddings == 64);
  Json const other{{"rope_type", "linear"}, {"factor", 3}, {"rope_theta", 42}};
  CHECK(rope({{"rope_scaling", plain}, {"rope_parameters", other}}).rope_scaling.kind ==
        Kind::yarn);
}

TEST_CASE("what the library does not compute is refused by name") {
  auto const llama = small("llama");
  check_unsupported(with(llama, {{"model_type", "gemma"}}),
                    "model_type is \"gemma\", which is not supported; supported is one of llama, "
                    "mistral, qwen2, qwen3");
  check_unsupported(with(llama, {{"architectures", {"LlamaForSequenceClassification"}}}),
                    "supported is LlamaForCausalLM");
  check_unsupported(with(llama, {{"hidden_act", "gelu"}}), "hidden_act is \"gelu\"");
  check_unsupported(with(llama, {{"attention_dropout", 0.1}}), "attention_dropout is 0.1");
  check_unsupported(with(llama, {{"quantization_config", {{"bits", 4}}}}), "quantization_config");
  check_unsupported(with(llama, {{"auto_map", {{"AutoModel", "code.Model"}}}}), "auto_map");
  check_unsupported(with(llama, {{"partial_rotary_factor", 0.5}}), "partial_rotary_factor is 0.5");
  auto const rope = [&](Json const& fields) { return with(llama, {{"rope_scaling", fields}}); };
  check_unsupported(rope({{"rope_type", "dynamic"}, {"factor", 2}}),
                    "rope_scaling.rope_type is \"dynamic\", which is not supported; supported is "
                    "default, linear, llama3 or yarn");
  check_unsupported(rope({{"type", "longrope"}}), "rope_scaling.type is \"longrope\"");
  check_unsupported(rope({{"type", "default"}, {"mrope_section", {16, 24, 24}}}),
                    "rope_scaling.mrope_section is [16,24,24]");
  check_unsupported(rope({{"type", "default"}, {"partial_rotary_factor", 0.25}}),
                    "rope_scaling.partial_rotary_factor is 0.25");
  check_unsupported(with(llama, {{"rope_parameters", {{"full_attention", {{"rope_theta", 2}}}}}}),
                    "rope_parameters.full_attention");
}

TEST_CASE("a field that is missing or says nothing sensible is refused by name") {
  auto const llama = small("llama");
  for (auto const* const name : {"vocab_size",
                                 "hidden_size",
                                 "intermediate_size",
                                 "num_hidden_layers",
                                 "num_attention_heads",
                                 "max_position_embeddings"}) {
    auto json = llama;
    json.erase(name);
    check_bad(json, std::string(name) + " is missing");
    json[name] = nullptr;
    check_bad(json, std::string(name) + " is missing");
    for (Json const& value : {Json(0), Json(-1), Json(1.5), Json("8"), Json(true), Json::array()}) {
      json[name] = value;
      check_bad(json, std::string(name) + " is " + value.dump() + ", but must be a whole number");
    }
    json[name] = std::int64_t{1} << 31;
    check_bad(json, "from 1 to 2147483647");
    json[name] = ~std::uint64_t{0};
    check_bad(json, "from 1 to 2147483647");
  }
  check_bad(Json::array(), "the text is no object");
  check_bad(Json::object(), "model_type is missing");
  check_bad(with(llama, {{"model_type", 7}}), "model_type is 7, but must be a string");
  check_bad(with(llama, {{"num_hidden_layers", 100000}}), "num_hidden_layers is 100000, more than");
  check_bad(with(llama, {{"tie_word_embeddings", 1}}), "must be true or false");
  check_bad(with(llama, {{"rms_norm_eps", "1e-5"}}), "rms_norm_eps is \"1e-5\"");
  check_bad(with(llama, {{"rms_norm_eps", -1}}), "norm_epsilon must be positive");
  check_bad(with(llama, {{"num_key_value_heads", 3}}), "kv_heads = 3 does not divide heads = 4");
  check_bad(with(llama, {{"head_dim", 15}}), "must be even");
  check_bad(with(llama, {{"rope_theta", 0}}), "rope_theta must be positive");
  check_bad(with(llama, {{"rope_scaling", {{"type", "linear"}}}}),
            "rope_scaling.factor is missing");
  check_bad(with(llama, {{"rope_scaling", {{"type", "linear"}, {"factor", 0.5}}}}),
            "rope_scaling.type is not possible: RopeScaling::factor is 0.5");
  check_bad(with(llama, {{"rope_scaling", "linear"}}), "rope_scaling is no object");
  check_bad(with(llama, {{"rope_scaling", {{"type", "llama3"}, {"factor", 8}}}}),
            "rope_scaling.low_freq_factor is missing");
  check_bad(with(small("mistral"), {{"sliding_window", 0}}), "sliding_window is 0");
  check_bad(with(small("qwen2"), {{"max_window_layers", -1}}), "from 0 to 2147483647");
}

TEST_CASE("a long or binary value is cut and cleaned in the message") {
  auto const error = test::error_of([] {
    static_cast<void>(
        read(with(small("llama"), {{"hidden_act", std::string(1000, 'x') + "\n\x7f"}})));
  });
  CHECK(error.message().size() < 300);
}

TEST_CASE("the file is config.json of the folder") {
  test::TemporaryFolder const folder;
  CHECK_THROWS_AS(static_cast<void>(read_model_config(folder.path)), Error);
  std::ofstream(folder.path / "config.json") << small("qwen2").dump();
  CHECK(read_model_config(folder.path).model_type == "qwen2");
}

}  // namespace model_config_test
