// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The code of docs/10_real_models.md; docs_are_tested.cmake looks for it here.

#include <roundpipe/architectures/adapter_config.hpp>
#include <roundpipe/architectures/adapter_weights.hpp>
#include <roundpipe/architectures/checkpoint_weights.hpp>
#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/data/batch_loader.hpp>
#include <roundpipe/data/dataset.hpp>
#include <roundpipe/data/open_data.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/roundpipe.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>
#include <support/made_documents.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace docs_real_models_test {

using namespace roundpipe;

namespace {

/// A folder as the model hub has them, with random weights.
void make_checkpoint(std::filesystem::path const& folder) {
  std::filesystem::create_directory(folder);
  write_file(folder / "config.json", R"({
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 40,
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "head_dim": 4, "intermediate_size": 12, "max_position_embeddings": 64, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true})");
  auto const config = read_model_config(folder);
  SerialTrainer made{nn::transformer<nn::HostOps<float>>(config.transformer),
                     AdamW{},
                     SerialOptions{.capacity = {1, 4}, .seed = 3}};
  WorkerPool threads(1);
  save_weights(made, TensorNames(config), folder, {.type = DType::f32}, threads);
}

std::vector<float> norm_of(std::filesystem::path const& folder) {
  CheckpointFolder const checkpoint(folder);
  auto const tensor = checkpoint.at("model.norm.weight");
  std::vector<float> values(tensor.info().size());
  read_elements(
      tensor, 0, {reinterpret_cast<std::byte*>(values.data()), values.size(), DType::f32});
  return values;
}

}  // namespace

TEST_CASE("docs/10_real_models.md: a folder of weights goes in, a trained one comes out") {
  test::TemporaryFolder const folder;
  auto const model_folder = folder.path / "model";
  auto const output_folder = folder.path / "trained";
  auto const token_file = folder.path / "train.tokens";
  make_checkpoint(model_folder);
  test::write_token_file(token_file, test::made_documents({20, 9}), 40);

  ModelConfig config = read_model_config(model_folder);  // config.json
  config.transformer.loss_chunk = 512;
  TensorNames const names(config);
  CheckpointFolder const checkpoint(model_folder);
  WorkerPool threads(2);

  HostBackend backend;
  Pipeline pipeline{nn::transformer<nn::HostOps<float>>(config.transformer),
                    AdamW{},
                    backend,
                    PipelineOptions{.capacity = {2, 16}, .micro_batches_per_round = 2}};
  load_weights(pipeline, names, checkpoint, threads);

  std::vector<DataSource> files;
  files.push_back(open_data(token_file));
  DatasetOptions options;
  options.context = 16;
  options.vocabulary = static_cast<std::uint64_t>(config.transformer.vocabulary);
  Dataset const data(std::move(files), options);
  BatchLoader loader(data, {.rows = 4, .micro_batch_rows = 2}, data.position());
  for (int step = 0; step < 3; ++step) {
    pipeline.forward_backward(loader.next().view());
    pipeline.step();
  }

  save_weights(
      pipeline, names, output_folder, {.type = DType::f32, .source = &checkpoint}, threads);

  CHECK(std::filesystem::exists(output_folder / "config.json"));
  CHECK(read_model_config(output_folder).transformer.tied);
  CHECK(norm_of(output_folder).size() == 8);
  CHECK(norm_of(output_folder) != norm_of(model_folder));

  auto const snapshot_folder = folder.path / "snapshots";
  HostBackendOptions machine;
  machine.devices = 3;
  HostBackend other_backend(machine);

  SnapshotWriterOptions saving;
  saving.format.tensor_name = [&](std::string const& name) { return names.theirs(name); };
  SnapshotWriter writer(snapshot_folder, saving);
  nlohmann::json const program{{"learning_rate", 1e-3}};
  for (int step = 0; step < 4; ++step) {
    pipeline.forward_backward(loader.next().view());
    pipeline.step();
    if (step % 2 == 1) {
      writer.save(pipeline.state(), {.data = loader.position(), .program = program});
    }
  }
  writer.wait();

  CHECK(writer.last()->step == 7);
  CHECK(CheckpointFolder(writer.last()->path).find("model.norm.weight"));
  pipeline.forward_backward(loader.next().view());
  pipeline.step();

  Snapshot const snapshot(*newest_snapshot(snapshot_folder));
  Pipeline resumed{nn::transformer<nn::HostOps<float>>(config.transformer),
                   AdamW{},
                   other_backend,
                   PipelineOptions{.capacity = {2, 16}, .micro_batches_per_round = 2}};
  resumed.restore(snapshot.state());
  BatchLoader batches(data, {.rows = 4, .micro_batch_rows = 2}, *snapshot.data());
  resumed.forward_backward(batches.next().view());
  resumed.step();

  CHECK(snapshot.program() == program);
  CHECK(weights_digest(resumed) == weights_digest(pipeline));
}

TEST_CASE("docs/10_real_models.md: adapters are trained, saved, merged and trained further") {
  test::TemporaryFolder const folder;
  auto const model_folder = folder.path / "model";
  auto const adapter_folder = folder.path / "adapter";
  auto const merged_folder = folder.path / "merged";
  make_checkpoint(model_folder);
  CheckpointFolder const checkpoint(model_folder);
  WorkerPool threads(2);
  HostBackend backend;
  std::vector<std::int32_t> const tokens(2 * 2 * 16, 7);
  auto const batch = Batch(2, {2, 16}).set("tokens", tokens).set("labels", tokens);

  ModelConfig tuned = read_model_config(model_folder);
  tuned.transformer.lora = {
      .rank = 4, .alpha = 8, .dropout = 0.05, .targets = {"q_proj", "v_proj", "2.mlp.*"}};
  TensorNames const tuned_names(tuned);
  Pipeline adapted{nn::transformer<nn::HostOps<float>>(tuned.transformer),
                   AdamW{},
                   backend,
                   PipelineOptions{.capacity = {2, 16}, .micro_batches_per_round = 2}};
  load_weights(adapted, tuned_names, checkpoint, threads);  // the base
  adapted.forward_backward(batch);
  adapted.step();

  save_adapter(
      adapted, tuned_names, adapter_folder, {.base_model = model_folder.string()}, threads);
  save_weights(
      adapted, tuned_names, merged_folder, {.type = DType::f32, .source = &checkpoint}, threads);

  ModelConfig again = read_model_config(model_folder);
  again.transformer.lora = read_adapter_config(adapter_folder, TensorNames(again)).lora;
  TensorNames const names_again(again);
  Pipeline further{nn::transformer<nn::HostOps<float>>(again.transformer),
                   AdamW{},
                   backend,
                   PipelineOptions{.capacity = {2, 16}, .micro_batches_per_round = 2}};
  load_weights(further, names_again, checkpoint, threads);
  load_adapter(further, names_again, adapter_folder, threads);

  CHECK(norm_of(merged_folder) == norm_of(model_folder));
  CHECK(weights_digest(further) == weights_digest(adapted));
  CHECK(further.evaluate(batch).loss == adapted.evaluate(batch).loss);
}

}  // namespace docs_real_models_test
