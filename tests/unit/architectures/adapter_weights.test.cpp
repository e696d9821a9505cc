// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/architectures/adapter_weights.hpp>

#include <roundpipe/architectures/checkpoint_weights.hpp>
#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/io/safetensors_writer.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace adapter_weights_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

ModelConfig tiny(std::int64_t hidden = 8) {
  ModelConfig config;
  config.model_type = "qwen3";
  config.transformer.vocabulary = 11;
  config.transformer.hidden = hidden;
  config.transformer.layers = 2;
  config.transformer.heads = 2;
  config.transformer.head_dim = 4;
  config.transformer.intermediate = 12;
  config.transformer.query_key_norm = true;
  config.transformer = config.transformer.resolved();
  config.transformer.lora = {
      .rank = 2, .alpha = 6, .targets = {"1.self_attn.*", "down_proj", "lm_head"}};
  return config;
}

using Model = decltype(nn::transformer<nn::HostOps<float>>({}));
using Values = std::map<std::string, std::vector<float>>;

/// Its adapters are those of a training that has begun, unless they are \p fresh.
struct Trainer : SerialTrainer<Model, AdamW> {
  Trainer(ModelConfig const& config, std::uint64_t seed, bool fresh = false)
      : SerialTrainer(nn::transformer<nn::HostOps<float>>(config.transformer),
                      AdamW{},
                      SerialOptions{.capacity = {1, 3}, .seed = seed}) {
    std::uint64_t drawn = 0;
    for (auto& [name, parameter] : values()) {
      if (!fresh && nn::is_lora_parameter(name)) {
        for (auto& value : parameter) {
          value = normal({.seed = seed, .layer = 99}, ++drawn);
        }
        write_parameter(name, parameter);
      }
    }
  }
  [[nodiscard]] Values values() const {
    Values result;
    for_each_parameter([&](std::string const& name, auto const&, auto const& parameter) {
      result[name] = {parameter.begin(), parameter.end()};
    });
    return result;
  }
};

}  // namespace

TEST_CASE("a trainer's adapters go into a folder and into another trainer, bit for bit") {
  auto const config = tiny();
  TensorNames const names(config);
  TemporaryFolder const folder;
  WorkerPool pool(2);
  Trainer from(config, 1);
  save_adapter(from, names, folder.path / "adapter", {.base_model = "tiny"}, pool);
  SafetensorsFile const file(folder.path / "adapter" / "adapter_model.safetensors");
  CHECK(file.size() == 2 * (4 + 2 + 1));
  CHECK(to_string(file.at("base_model.model.model.layers.1.mlp.down_proj.lora_A.weight").info()) ==
        "F32[2, 12]");
  CHECK(to_string(file.at("base_model.model.lm_head.lora_B.weight").info()) == "F32[11, 2]");

  auto bare = tiny();
  bare.transformer.lora = {};
  auto const read = read_adapter_config(folder.path / "adapter", TensorNames(bare));
  CHECK(read.base_model == "tiny");
  bare.transformer.lora = read.lora;
  Trainer to(bare, 2, true);
  auto const before = to.values();
  load_adapter(to, TensorNames(bare), folder.path / "adapter", pool);
  auto const wanted = from.values();
  for (auto const& [name, values] : to.values()) {
    CAPTURE(name);
    CHECK(values == (nn::is_lora_parameter(name) ? wanted : before).at(name));
  }
}

TEST_CASE("saved weights have the adapters merged, and loaded ones leave adapters alone") {
  auto const config = tiny();
  TensorNames const names(config);
  TemporaryFolder const folder;
  WorkerPool pool(2);
  Trainer trainer(config, 1);
  auto const values = trainer.values();
  save_weights(trainer, names, folder.path / "merged", {.type = DType::f32}, pool);
  CheckpointFolder const merged(folder.path / "merged");
  CHECK(merged.tensors().size() == names.pairs().size());
  Trainer other(config, 2);
  auto const before = other.values();
  load_weights(other, names, merged, pool);
  for (auto const& [name, loaded] : other.values()) {
    CAPTURE(name);
    if (nn::is_lora_parameter(name)) {
      CHECK(loaded == before.at(name));
      continue;
    }
    auto expected = values.at(name);
    auto const map = name.substr(0, name.rfind('.'));
    if (auto const b = values.find(map + ".lora_B.weight"); b != values.end()) {
      auto const& a = values.at(map + ".lora_A.weight");
      auto const in = a.size() / 2;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        auto const* const row = b->second.data() + i / in * 2;
        expected[i] += 3 * (row[0] * a[i % in] + row[1] * a[in + i % in]);
      }
      CHECK(loaded != values.at(name));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(loaded[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("names of a model without adapters save no model with them") {
  auto config = tiny();
  TemporaryFolder const folder;
  WorkerPool pool(1);
  Trainer trainer(config, 1);
  config.transformer.lora = {};
  TensorNames const names(config);
  CHECK(contains(
      error_of([&] { save_weights(trainer, names, folder.path / "out", {}, pool); }).message(),
      "lora_A.weight is of rank 2, but the configuration of which the names were made "
      "says 0"));
  CHECK(contains(
      error_of([&] { save_adapter(trainer, names, folder.path / "out", {}, pool); }).message(),
      "has no low-rank adapters"));
  CHECK(!std::filesystem::exists(folder.path / "out"));
}

TEST_CASE("adapters of another base or another kind are refused before anything changes") {
  auto const config = tiny();
  TensorNames const names(config);
  TemporaryFolder const folder;
  WorkerPool pool(1);
  Trainer trainer(config, 1);
  auto const adapter = folder.path / "adapter";
  auto const refusal = [&](auto const& change) {
    auto other = tiny();
    change(other);
    Trainer from(other, 3);
    save_adapter(from, TensorNames(other), adapter, {}, pool);
    auto const before = weights_digest(trainer);
    auto const error = error_of([&] { load_adapter(trainer, names, adapter, pool); });
    CHECK(error.code() == Errc::bad_file);
    CHECK(weights_digest(trainer) == before);
    return error.message();
  };
  auto const file = "'" + (adapter / "adapter_model.safetensors").string() + "': ";
  auto const config_file = "'" + (adapter / "adapter_config.json").string() + "': ";
  CHECK(refusal([](ModelConfig& c) { c.transformer.lora.rank = 3; }) ==
        config_file + "r is 3, but the model's adapters have 2");
  CHECK(refusal([](ModelConfig& c) { c.transformer.lora.alpha = 5; }) ==
        config_file + "lora_alpha is 5.0, but the model's adapters have 6.0");
  CHECK(refusal([](ModelConfig& c) { c.transformer.lora.use_rslora = true; }) ==
        config_file + "use_rslora is true, but the model's adapters have false");
  CHECK(
      refusal([](ModelConfig& c) { c.transformer = tiny(16).transformer; }) ==
      file +
          "tensor 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight' is F32[2, 16], "
          "but the model's adapter has [2, 8]; is it of another base model?");
  CHECK(refusal([](ModelConfig& c) { c.transformer.lora.targets = {"lm_head"}; }) ==
        file +
            "tensor 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight' is missing");
  CHECK(refusal([](ModelConfig& c) { c.transformer.lora.targets = {"*"}; }) ==
        file +
            "tensor 'base_model.model.model.layers.0.mlp.gate_proj.lora_A.weight' is no matrix of "
            "the model's adapters; is it of another base model?");
  CHECK(contains(refusal([](ModelConfig& c) {
                   c.transformer.layers = 3;
                   c.transformer.lora.targets = {"3.mlp.down_proj"};
                 }),
                 config_file + "target_modules names 'model.layers.2.mlp.down_proj', which is no "
                               "linear map of the model"));
}

TEST_CASE("a copy of the frozen head, which peft writes beside its adapter, is not read") {
  auto config = tiny();
  config.transformer.lora.targets = {"lm_head"};
  TensorNames const names(config);
  TemporaryFolder const folder;
  WorkerPool pool(1);
  Trainer trainer(config, 1);
  save_adapter(trainer, names, folder.path, {}, pool);
  std::vector<TensorInfo> const tensors{
      {"base_model.model.lm_head.base_layer.weight", "F32", {11, 8}},
      {"base_model.model.lm_head.lora_A.weight", "F32", {2, 8}},
      {"base_model.model.lm_head.lora_B.weight", "F32", {11, 2}}};
  SafetensorsWriter writer(folder.path / "adapter_model.safetensors", tensors);
  for (auto const& tensor : tensors) {
    writer.write(tensor.name, 0, std::vector<std::byte>(tensor.bytes()));
  }
  writer.finish();
  auto const before = trainer.values();
  load_adapter(trainer, names, folder.path, pool);
  auto const after = trainer.values();
  CHECK(after.at("3.lm_head.weight") == before.at("3.lm_head.weight"));
  CHECK(after.at("3.lm_head.lora_A.weight") == std::vector<float>(2 * 8));
}

}  // namespace adapter_weights_test
