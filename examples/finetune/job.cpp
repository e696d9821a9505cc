// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "job.hpp"

#include <common/command_line.hpp>
#include <common/described_ops.hpp>
#include <common/precision.hpp>
#include <common/weights_type.hpp>
#include <roundpipe/architectures/adapter_config.hpp>
#include <roundpipe/architectures/checkpoint_weights.hpp>
#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/data/open_data.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/nn/name_pattern.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace finetune {

namespace {

namespace rp = roundpipe;
namespace fs = std::filesystem;
using examples::refuse;
using examples::weights_type;

/// Refuses what would fail only after the training, or mix two trainings.
/// \returns the snapshot to go on from.
std::optional<fs::path> check_output(Options const& o) {
  fs::path const output(o.output);
  if (std::error_code ignored; fs::equivalent(o.model, output, ignored)) {
    refuse("--output is the folder of --model; choose another, so that nothing is lost");
  }
  auto const snapshots = output / "snapshots";
  auto const newest = rp::newest_snapshot(snapshots);
  if (o.resume) {
    if (!newest) {
      refuse("--resume: '" + snapshots.string() + "' holds no snapshot; --save-every makes some");
    }
    return newest;
  }
  for (auto const& path : {newest.value_or(fs::path()),
                           output / "model.safetensors",
                           output / "model.safetensors.index.json"}) {
    if (std::error_code ignored; !path.empty() && fs::exists(path, ignored)) {
      refuse("--output already holds '" + path.string() +
             "'; choose another folder, or go on with --resume");
    }
  }
  return std::nullopt;
}

std::int64_t context_of(Options const& o, rp::ModelConfig const& model) {
  constexpr std::int64_t usual = 1024;
  if (o.context > model.longest_context) {
    refuse("--context is " + std::to_string(o.context) + ", but the model is made for " +
           std::to_string(model.longest_context) + " positions (max_position_embeddings)");
  }
  return o.context > 0 ? o.context : std::min(usual, model.longest_context);
}

rp::Dataset open_dataset(Options const& o, rp::ModelConfig const& model) {
  std::vector<rp::DataSource> sources;
  for (std::size_t i = 0; i < o.data.size(); ++i) {
    sources.push_back(rp::open_data(o.data[i], o.data_weights.empty() ? 1 : o.data_weights[i]));
  }
  rp::DatasetOptions options{
      .context = static_cast<std::uint64_t>(o.context),
      .packing = o.packing == "packed" ? rp::RowPacking::packed : rp::RowPacking::document_per_row,
      .shuffles = o.shuffles && o.steps != 0,
      .seed = o.seed,
      .vocabulary = static_cast<std::uint64_t>(model.transformer.vocabulary)};
  if (o.steps != 0) {
    constexpr std::uint64_t enough_rows = 1000;
    constexpr std::uint64_t usual = 100;
    auto counting = options;
    counting.reads_all = false;
    auto const rows = rp::Dataset(sources, counting).rows_per_epoch();
    options.held_out_every =
        o.held_out ? static_cast<std::uint64_t>(*o.held_out) : (rows >= enough_rows ? usual : 0);
  }
  return {std::move(sources), options};
}

std::int64_t steps_of(Options const& o, rp::Dataset const& data) {
  if (o.steps) {
    return *o.steps;
  }
  auto const rows = o.epochs.value_or(0) * static_cast<double>(data.rows_per_epoch());
  auto const steps = std::ceil(rows / static_cast<double>(o.batch));
  if (steps > std::numeric_limits<std::int32_t>::max()) {
    refuse("--epochs makes more steps than fit 32 bits");
  }
  return static_cast<std::int64_t>(std::max(1.0, steps));
}

std::uint64_t evaluated_rows(Options const& o, rp::Dataset const& data) {
  if (o.steps == 0) {
    return data.rows_per_epoch();
  }
  return std::min(static_cast<std::uint64_t>(o.evaluation_rows),
                  data.held_out_rows() > 0 ? data.held_out_rows() : data.rows_per_epoch());
}

/// Sets which parts of \p model are trained.
void choose_parts(Options const& o, rp::ModelConfig& model) {
  auto& c = model.transformer;
  rp::TensorNames const names(model);
  if (!o.adapter.empty()) {
    c.lora = rp::read_adapter_config(o.adapter, names).lora;
  } else if (o.lora_rank > 0) {
    c.lora.rank = o.lora_rank;
    c.lora.alpha = o.lora_alpha;
    c.lora.dropout = o.lora_dropout;
    c.lora.use_rslora = o.rslora;
    if (!o.lora_targets.empty()) {
      c.lora.targets = o.lora_targets;
    }
  }
  for (auto const& pattern : o.freeze) {
    auto const before = c.frozen_parameters.size();
    for (auto const& [ours, theirs] : names.pairs()) {
      if (rp::nn::matches_name(pattern, theirs)) {
        c.frozen_parameters.push_back(ours);
      }
    }
    if (c.frozen_parameters.size() == before) {
      refuse("--freeze '" + pattern + "' matches no tensor; there are " +
             names.pairs().front().theirs + " to " + names.pairs().back().theirs);
    }
  }
  if (c.frozen_parameters.size() >= names.pairs().size()) {
    refuse("--freeze leaves nothing to train");
  }
  c = c.resolved();
}

/// Finds wrong tensors before memory for the model is taken.
void check_weights(rp::ModelConfig const& model,
                   rp::TensorNames const& names,
                   rp::CheckpointFolder const& checkpoint) {
  auto const blocks = rp::form_blocks(
      rp::describe(rp::nn::transformer<examples::DescribedOps>(model.transformer), {1, 1}));
  blocks.for_each([&](rp::BlockTensor parameter) {
    if (auto const name = blocks.name_of(parameter); !rp::nn::is_lora_parameter(name)) {
      static_cast<void>(rp::weights_of(checkpoint, names, name, blocks.tensor(parameter).shape));
    }
  });
}

}  // namespace

bool Job::narrows_weights() const {
  return model.transformer.parameter == rp::DType::f32 && !names.lora().rank &&
         output_type.value_or(weights_type(checkpoint, names)) != rp::DType::f32;
}

Job prepare(Options& o) {
  auto model = rp::read_model_config(o.model);
  choose_parts(o, model);
  rp::TensorNames names(model);
  rp::CheckpointFolder checkpoint(o.model);
  check_weights(model, names, checkpoint);
  auto const snapshot = check_output(o);
  o.precision = o.wanted_precision == "as-model"
                    ? examples::precision_name(weights_type(checkpoint, names))
                    : o.wanted_precision;
  check_precision(o);
  o.context = context_of(o, model);
  auto& c = model.transformer;
  c.storage = c.parameter = declared_type(o);
  c.dropout = o.dropout;
  c.initial_deviation = 0;  // all weights come from the checkpoint
  auto data = open_dataset(o, model);
  auto const steps = steps_of(o, data);
  auto const rows = evaluated_rows(o, data);
  auto const output_type = o.output_type == "as-model"
                               ? std::nullopt
                               : std::optional(examples::type_named(o.output_type));
  return {std::move(model),
          std::move(names),
          std::move(checkpoint),
          std::move(data),
          rows,
          steps,
          o.output,
          output_type,
          snapshot ? std::optional<rp::Snapshot>(std::in_place, *snapshot, o.group) : std::nullopt};
}

}  // namespace finetune
