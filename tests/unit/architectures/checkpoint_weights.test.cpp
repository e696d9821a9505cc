// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/architectures/checkpoint_weights.hpp>

#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace checkpoint_weights_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

ModelConfig tiny(bool tied, std::int64_t hidden = 8) {
  ModelConfig config;
  config.model_type = "qwen3";
  config.transformer.vocabulary = 11;
  config.transformer.hidden = hidden;
  config.transformer.layers = 2;
  config.transformer.heads = 2;
  config.transformer.kv_heads = 1;
  config.transformer.intermediate = 12;
  config.transformer.query_key_norm = true;
  config.transformer.tied = tied;
  config.transformer = config.transformer.resolved();
  return config;
}

auto trainer_of(ModelConfig const& config, std::uint64_t seed) {
  return SerialTrainer{nn::transformer<nn::HostOps<float>>(config.transformer),
                       AdamW{},
                       SerialOptions{.capacity = {1, 3}, .seed = seed}};
}

}  // namespace

TEST_CASE("a trainer's weights go into a folder and into another trainer, bit for bit") {
  for (bool const tied : {false, true}) {
    CAPTURE(tied);
    auto const config = tiny(tied);
    TensorNames const names(config);
    TemporaryFolder const folder;
    WorkerPool pool(2);
    auto from = trainer_of(config, 1);
    auto to = trainer_of(config, 2);
    REQUIRE(weights_digest(from) != weights_digest(to));
    save_weights(from, names, folder.path / "out", {.type = DType::f32}, pool);
    CheckpointFolder const checkpoint(folder.path / "out");
    CHECK(checkpoint.tensors().size() == names.pairs().size());
    load_weights(to, names, checkpoint, pool);
    CHECK(weights_digest(from) == weights_digest(to));
  }
}

TEST_CASE("tensors and files that the model does not have go along as they are") {
  auto const config = tiny(true);
  TensorNames const names(config);
  TemporaryFolder const folder;
  WorkerPool pool(1);
  auto const source = folder.path / "source";
  std::filesystem::create_directory(source);
  auto trainer = trainer_of(config, 1);
  std::vector<TensorInfo> tensors;
  trainer.for_each_parameter([&](std::string const& name, Shape const& shape, auto const&) {
    tensors.push_back(tensor_info({names.theirs(name), shape, DType::f32}));
  });
  tensors.push_back({"extra.scales", "F8_E4M3", {3}});
  tensors.push_back({"lm_head.weight", "F32", {11, 8}});  // of a tied model: a copy
  {
    CheckpointWriter writer(source, tensors);
    for (auto const& tensor : tensors) {
      writer.write(tensor.name, 0, std::vector<std::byte>(tensor.bytes(), std::byte{7}));
    }
    writer.finish();
  }
  write_file(source / "tokenizer.json", "{}");
  CheckpointFolder const began(source);
  save_weights(trainer, names, folder.path / "out", {.type = DType::bf16, .source = &began}, pool);
  CheckpointFolder const out(folder.path / "out");
  CHECK(std::filesystem::exists(folder.path / "out" / "tokenizer.json"));
  CHECK(out.at("extra.scales").info().dtype == "F8_E4M3");
  CHECK(out.at("extra.scales").bytes()[2] == std::byte{7});
  CHECK(!out.find("lm_head.weight"));
  CHECK(out.at("model.norm.weight").info().dtype == "BF16");
}

TEST_CASE("weights go out in the types in which they came, and integers never come in") {
  auto const config = tiny(true);
  TensorNames const names(config);
  TemporaryFolder const folder;
  WorkerPool pool(1);
  auto trainer = trainer_of(config, 1);
  CHECK(error_of([&] { save_weights(trainer, names, folder.path / "none", {}, pool); }).code() ==
        Errc::invalid_argument);
  for (auto const* const type : {"BF16", "I32"}) {
    auto const source = folder.path / type;
    {
      std::vector<TensorInfo> tensors;
      for (auto const& parameter : trainer.state().parameters) {
        bool const is_norm = parameter.name == "3.norm.weight";
        tensors.push_back(
            tensor_info({names.theirs(parameter.name), parameter.weights.shape, DType::f32}));
        tensors.back().dtype = is_norm ? type : "F32";
      }
      CheckpointWriter writer(source, tensors);
      for (auto const& tensor : tensors) {
        auto const byte = type == std::string("I32") ? std::byte{2} : std::byte{1};
        writer.write(tensor.name, 0, std::vector<std::byte>(tensor.bytes(), byte));
      }
      writer.finish();
    }
    CheckpointFolder const checkpoint(source);
    auto const before = weights_digest(trainer);
    if (type == std::string("I32")) {
      auto const error = error_of([&] { load_weights(trainer, names, checkpoint, pool); });
      CHECK(error.code() == Errc::unsupported);
      CHECK(error.message().find("model.norm.weight") != std::string::npos);
      CHECK(weights_digest(trainer) == before);
      continue;
    }
    load_weights(trainer, names, checkpoint, pool);
    save_weights(trainer, names, folder.path / "out", {.source = &checkpoint}, pool);
    CheckpointFolder const out(folder.path / "out");
    for (auto const& tensor : checkpoint.tensors()) {
      auto const copy = out.at(tensor.info().name);
      CHECK(copy.info() == tensor.info());
      CHECK(std::ranges::equal(copy.bytes(), tensor.bytes()));
    }
  }
}

TEST_CASE(
    "a checkpoint that does not have the model's tensors is refused before anything changes") {
  TemporaryFolder const folder;
  WorkerPool pool(1);
  auto const config = tiny(true);
  auto small = trainer_of(config, 1);
  save_weights(small, TensorNames(config), folder.path / "out", {.type = DType::f32}, pool);
  CheckpointFolder const checkpoint(folder.path / "out");

  auto const untied = tiny(false);
  auto other = trainer_of(untied, 2);
  auto const before = weights_digest(other);
  auto error = error_of([&] { load_weights(other, TensorNames(untied), checkpoint, pool); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(error.message().find("lm_head.weight") != std::string::npos);

  auto const wide = tiny(true, 16);
  auto wider = trainer_of(wide, 2);
  error = error_of([&] { load_weights(wider, TensorNames(wide), checkpoint, pool); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(error.message().find("model.embed_tokens.weight") != std::string::npos);
  CHECK(error.message().find("[11, 16]") != std::string::npos);
  CHECK(weights_digest(other) == before);
}

}  // namespace checkpoint_weights_test
