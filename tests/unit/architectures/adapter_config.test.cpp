// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/architectures/adapter_config.hpp>

#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace adapter_config_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

TensorNames names_of(bool tied) {
  ModelConfig config;
  config.model_type = "llama";
  config.transformer.vocabulary = 11;
  config.transformer.hidden = 8;
  config.transformer.layers = 2;
  config.transformer.heads = 2;
  config.transformer.tied = tied;
  config.transformer = config.transformer.resolved();
  return TensorNames(config);
}

/// The file that peft 0.21 writes for adapters of q and v.
nlohmann::json peft_file() {
  return nlohmann::json::parse(R"({
    "alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null,
    "auto_mapping": null, "base_model_name_or_path": "models/tiny", "bias": "none",
    "corda_config": null, "ensure_weight_tying": false, "eva_config": null,
    "exclude_modules": null, "fan_in_fan_out": false, "inference_mode": true,
    "init_lora_weights": true, "kasa_config": null, "layer_replication": null,
    "layers_pattern": null, "layers_to_transform": null, "loftq_config": {}, "lora_alpha": 16,
    "lora_bias": false, "lora_dropout": 0.05, "lora_ga_config": null, "megatron_config": null,
    "megatron_core": "megatron.core", "modules_to_save": null, "monteclora_config": null,
    "peft_type": "LORA", "peft_version": "0.21.2", "qalora_group_size": 16, "r": 4,
    "rank_pattern": {}, "revision": null, "target_modules": ["v_proj", "q_proj"],
    "target_parameters": null, "task_type": "CAUSAL_LM", "trainable_token_indices": null,
    "use_bdlora": null, "use_dora": false, "use_qalora": false, "use_rslora": false,
    "velora_config": null})");
}

AdapterConfig read(nlohmann::json const& json, bool tied = false) {
  return read_adapter_config(json, "adapter_config.json", names_of(tied));
}

/// The error of peft's file with \p value in place of one field, which it must name.
Error refusal(char const* field, nlohmann::json const& value) {
  auto json = peft_file();
  json[field] = value;
  auto error = error_of([&] { static_cast<void>(read(json)); });
  CHECK_MESSAGE(contains(error.message(), field), error.message());
  CHECK(contains(error.message(), "adapter_config.json"));
  return error;
}

std::vector<std::string> targets(nlohmann::json const& value, bool tied = false) {
  auto json = peft_file();
  json["target_modules"] = value;
  return read(json, tied).lora.targets;
}

}  // namespace

TEST_CASE("peft's configuration of adapters is read") {
  auto const config = read(peft_file());
  CHECK(config.base_model == "models/tiny");
  CHECK(config.lora ==
        nn::LoraConfig{.rank = 4, .alpha = 16, .dropout = 0.05, .targets = {"q_proj", "v_proj"}});
  auto json = peft_file();
  json["use_rslora"] = true;
  json["lora_alpha"] = 2.5;
  json.erase("base_model_name_or_path");
  json.erase("task_type");
  json["init_lora_weights"] = "gaussian";
  CHECK(read(json).lora.use_rslora);
  CHECK(read(json).lora.alpha == 2.5);
  CHECK(read(json).base_model.empty());
}

TEST_CASE("names of peft's modules become names of our maps") {
  using Names = std::vector<std::string>;
  CHECK(targets({"self_attn.k_proj"}) == Names{"k_proj"});
  CHECK(targets({"model.layers.1.mlp.up_proj"}) == Names{"2.mlp.up_proj"});
  CHECK(targets({"layers.0.mlp.up_proj", "1.mlp.up_proj"}) == Names{"up_proj"});
  CHECK(targets({"lm_head", "0.self_attn.o_proj"}) == Names{"1.self_attn.o_proj", "lm_head"});
  Names const all{"down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"};
  CHECK(targets("all-linear") == all);
  CHECK(targets("all-linear", true) == all);
}

TEST_CASE("what peft has and the library has not is refused by name") {
  CHECK(refusal("peft_type", "ADALORA").code() == Errc::unsupported);
  CHECK(refusal("task_type", "SEQ_CLS").code() == Errc::unsupported);
  CHECK(refusal("bias", "all").code() == Errc::unsupported);
  CHECK(refusal("init_lora_weights", "pissa").code() == Errc::unsupported);
  CHECK(refusal("use_dora", true).code() == Errc::unsupported);
  CHECK(refusal("modules_to_save", {"embed_tokens"}).code() == Errc::unsupported);
  CHECK(refusal("layers_to_transform", 0).code() == Errc::unsupported);
  CHECK(refusal("layers_pattern", "layers").code() == Errc::unsupported);
  CHECK(refusal("rank_pattern", {{"q_proj", 8}}).code() == Errc::unsupported);
  CHECK(refusal("alpha_pattern", {{"q_proj", 8}}).code() == Errc::unsupported);
  CHECK(refusal("loftq_config", {{"loftq_bits", 4}}).code() == Errc::unsupported);
  CHECK(refusal("fan_in_fan_out", true).code() == Errc::unsupported);
  CHECK(refusal("what_peft_adds_next_year", 1).code() == Errc::unsupported);
  CHECK(refusal("target_modules", ".*_proj").code() == Errc::unsupported);
}

TEST_CASE("fields that say nothing sensible are refused by name") {
  CHECK(refusal("r", 0).code() == Errc::bad_file);
  CHECK(refusal("r", nullptr).code() == Errc::bad_file);
  CHECK(refusal("lora_alpha", 0).code() == Errc::bad_file);
  CHECK(refusal("lora_alpha", "much").code() == Errc::bad_file);
  CHECK(refusal("lora_dropout", 1).code() == Errc::bad_file);
  CHECK(refusal("lora_dropout", -0.5).code() == Errc::bad_file);
  CHECK(refusal("target_modules", nlohmann::json::array()).code() == Errc::bad_file);
  CHECK(refusal("target_modules", {"q_proj", 3}).code() == Errc::bad_file);
  CHECK(refusal("target_modules", {"q_proj", "proj"}).code() == Errc::bad_file);
  CHECK(contains(refusal("target_modules", {"q_proj", "embed_tokens"}).message(),
                 "'embed_tokens', which is no linear map of the model"));
  CHECK(contains(refusal("target_modules", {"model.layers.2.mlp.up_proj"}).message(),
                 "'model.layers.2.mlp.up_proj', which is no linear map of the model"));
}

TEST_CASE("the text of a configuration is what it was read from") {
  auto const names = names_of(false);
  AdapterConfig config{{.rank = 3, .alpha = 6, .dropout = 0.25, .use_rslora = true}, "base"};
  config.lora.targets = {"*.self_attn.[qk]_proj", "2.mlp.*", "lm_head"};
  auto const json = nlohmann::json::parse(adapter_config_text(config, names));
  CHECK(json["target_modules"] == nlohmann::json{"k_proj",
                                                 "lm_head",
                                                 "model.layers.1.mlp.down_proj",
                                                 "model.layers.1.mlp.gate_proj",
                                                 "model.layers.1.mlp.up_proj",
                                                 "q_proj"});
  CHECK(json["lora_alpha"].is_number_integer());
  auto const again = read(json);
  CHECK(again.base_model == "base");
  config.lora.targets = {
      "2.mlp.down_proj", "2.mlp.gate_proj", "2.mlp.up_proj", "k_proj", "lm_head", "q_proj"};
  CHECK(again.lora == config.lora);
}

}  // namespace adapter_config_test
