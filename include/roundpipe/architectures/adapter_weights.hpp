// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Low-rank adapters go from a folder in peft's layout into a trainer, and from a trainer
/// into such a folder.

#include <roundpipe/architectures/adapter_config.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <roundpipe/io/safetensors_writer.hpp>
#include <roundpipe/io/stored_tensor.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/io/tensor_transfer.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace roundpipe {

namespace architectures {

inline constexpr char const* adapter_weights_name = "adapter_model.safetensors";

/// Checks that adapters of \p config, which \p file tells, compute what those of \p model compute.
/// \throws Error (bad_file) that names the field.
inline void require_same_adapters(nn::LoraConfig const& config,
                                  nn::LoraConfig const& model,
                                  std::string const& file) {
  auto const check = [&](char const* field, auto const& said, auto const& ours) {
    if (said != ours) {
      throw bad_file(file,
                     field,
                     "is " + nlohmann::json(said).dump() + ", but the model's adapters have " +
                         nlohmann::json(ours).dump());
    }
  };
  check("r", config.rank, model.rank);
  check("lora_alpha", config.alpha, model.alpha);
  check("use_rslora", config.use_rslora, model.use_rslora);
}

}  // namespace architectures

/// Replaces the low-rank adapters of \p trainer, a `Pipeline` or `SerialTrainer` of
/// `nn::transformer`, by those in \p folder, which holds "adapter_config.json" and
/// "adapter_model.safetensors" as peft writes them. Everything is checked before anything changes.
/// Optimizer states stay. Copies of frozen weights of the base, which peft writes beside an adapter
/// of the head, are not read.
/// \param names of the model with its adapters: with `config.transformer.lora` as
///        \ref read_adapter_config tells it.
/// \throws Error like \ref read_adapter_config; and (bad_file) for a rank, an alpha or a scaling
///         other than the model's, a tensor that is missing or has another shape, and one that is
///         no matrix of the model's adapters; (invalid_argument) when there were calls since the
///         last step.
template <class Trainer>
void load_adapter(Trainer& trainer,
                  TensorNames const& names,
                  std::filesystem::path const& folder,
                  WorkerPool& pool) {
  auto const config = read_adapter_config(folder, names);
  architectures::require_same_adapters(
      config.lora, names.lora(), (folder / "adapter_config.json").string());
  SafetensorsFile const file(folder / architectures::adapter_weights_name);
  struct Known {
    std::string name;
    StoredTensor tensor;
  };
  std::vector<Known> known;
  std::set<std::string> theirs;
  for (auto const& parameter : trainer.state().parameters) {
    if (!nn::is_lora_parameter(parameter.name)) {
      continue;
    }
    auto const& shape = parameter.weights.shape;
    auto const tensor = file.at(names.peft_name(parameter.name));
    auto const wanted = tensor_info({tensor.info().name, shape, DType::f32});
    if (tensor.info().extents != wanted.extents) {
      throw bad_file(file.path().string(),
                     "tensor " + in_quotes(wanted.name),
                     "is " + to_string(tensor.info()) + ", but the model's adapter has " +
                         to_string(shape) + "; is it of another base model?");
    }
    known.push_back({parameter.name, tensor});
    theirs.insert(wanted.name);
    theirs.insert(wanted.name.substr(0, wanted.name.rfind(".lora_")) + ".base_layer.weight");
  }
  for (std::size_t i = 0; i < file.size(); ++i) {
    if (auto const& name = file[i].info().name; !theirs.contains(name)) {
      throw bad_file(file.path().string(),
                     "tensor " + in_quotes(name),
                     "is no matrix of the model's adapters; is it of another base model?");
    }
  }
  std::vector<std::vector<float>> values;
  std::vector<TensorRead> reads;
  for (auto const& [name, tensor] : known) {
    auto& to = values.emplace_back(tensor.info().size());
    reads.push_back({tensor, {reinterpret_cast<std::byte*>(to.data()), to.size(), DType::f32}});
  }
  read_tensors(reads, pool);
  for (std::size_t i = 0; i < known.size(); ++i) {
    trainer.write_parameter(known[i].name, values[i]);
  }
}

/// What \ref save_adapter writes.
struct SavedAdapter {
  DType type = DType::f32;      ///< Of the matrices.
  std::string base_model = {};  ///< The base model's folder or hub name, for who opens the adapter.
};

/// Writes the low-rank adapters of the last finished step of \p trainer into \p folder, in peft's
/// layout: "adapter_model.safetensors", then "adapter_config.json", each at once and whole, in
/// place of earlier ones.
/// \param names of the model with its adapters.
/// \throws Error (invalid_argument) when the model has no adapters, and when there were calls since
///         the last step; (unsupported) for a type that files do not have; and like \ref
///         SafetensorsWriter.
template <class Trainer>
void save_adapter(Trainer& trainer,
                  TensorNames const& names,
                  std::filesystem::path const& folder,
                  SavedAdapter const& saved,
                  WorkerPool& pool) {
  require(names.lora().rank > 0,
          Errc::invalid_argument,
          "save_adapter: the model has no low-rank adapters");
  std::vector<TensorInfo> tensors;
  std::vector<TensorWrite> writes;
  std::vector<std::vector<float>> values;
  for (auto const& parameter : trainer.state().parameters) {
    if (nn::is_lora_parameter(parameter.name)) {
      auto const& shape = parameter.weights.shape;
      tensors.push_back(tensor_info({names.peft_name(parameter.name), shape, saved.type}));
      trainer.read_parameter(parameter.name, values.emplace_back(shape.size()));
      writes.push_back({tensors.back().name, std::as_bytes(std::span(values.back())), DType::f32});
    }
  }
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    throw file_error("create the folder", folder, code.value());
  }
  SafetensorsWriter writer(
      folder / architectures::adapter_weights_name, std::move(tensors), {{"format", "pt"}});
  write_tensors(writer, writes, pool);
  writer.finish();
  write_file(folder / "adapter_config.json",
             adapter_config_text({names.lora(), saved.base_model}, names));
}

}  // namespace roundpipe
