// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Weights go from a checkpoint's folder into a trainer, and from a trainer into a folder.

#include <roundpipe/architectures/lora_merge.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/io/carried_files.hpp>
#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/io/checkpoint_writer.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/stored_tensor.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/io/tensor_transfer.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// The tensor of \p checkpoint with the weights of our parameter \p name of \p shape.
/// \throws Error (bad_file) for a tensor that is missing or has another shape; (unsupported) for
///         one of integers or of a type that is not known.
[[nodiscard]] inline StoredTensor weights_of(CheckpointFolder const& checkpoint,
                                             TensorNames const& names,
                                             std::string const& name,
                                             Shape const& shape) {
  auto const tensor = checkpoint.at(names.theirs(name));
  auto const& info = tensor.info();
  auto const file = tensor.file().file().path().string();
  if (info.extents != tensor_info({info.name, shape, DType::f32}).extents) {
    throw bad_file(file,
                   "tensor " + in_quotes(info.name),
                   "is " + to_string(info) + ", but the model has " + to_string(shape));
  }
  if (auto const type = info.type(); !type || !is_floating(*type)) {
    throw Error(Errc::unsupported,
                "tensor " + in_quotes(info.name) + " of " + in_quotes(file) + " is " +
                    to_string(info) + ", which no parameter can hold");
  }
  return tensor;
}

/// Replaces every parameter but the low-rank adapters of \p trainer, a `Pipeline` or
/// `SerialTrainer` of `nn::transformer`, by the tensor of \p checkpoint that \p names names: in all
/// copies, converted, by all threads of \p pool, which read straight into the trainer's own memory.
/// Optimizer states stay.
/// \throws Error, and replaces nothing: like \ref weights_of, and (invalid_argument) when there
///         were calls since the last step; and like \ref read_tensors, when some parameters may be
///         new and others not.
template <class Trainer>
void load_weights(Trainer& trainer,
                  TensorNames const& names,
                  CheckpointFolder const& checkpoint,
                  WorkerPool& pool) {
  for (auto const& parameter : trainer.state().parameters) {
    if (!nn::is_lora_parameter(parameter.name)) {
      (void)weights_of(checkpoint, names, parameter.name, parameter.weights.shape);
    }
  }
  trainer.overwrite_parameters([&](auto const& parameters) {
    std::vector<TensorRead> reads;
    for (auto const& [name, shape, copies] : parameters) {
      if (!nn::is_lora_parameter(name)) {
        reads.push_back({checkpoint.at(names.theirs(name)),
                         copies.front(),
                         {copies.begin() + 1, copies.end()}});
      }
    }
    read_tensors(reads, pool);
  });
}

/// What \ref save_weights writes.
struct SavedWeights {
  /// Of the model's tensors. None: each has the type that it has in \ref source.
  std::optional<DType> type = {};
  /// Where the training began, or none: its tensors that the model does not have, and its other
  /// files (tokenizer, configurations), go into the new folder as they are. It must live as long as
  /// the call.
  CheckpointFolder const* source = nullptr;
  CheckpointOptions files{};
};

/// Writes the weights of the last finished step of \p trainer into \p folder, which must hold none,
/// by all threads of \p pool. The folder's weights appear all at once, at the end. Low-rank
/// adapters are merged: the folder holds W + scale B A, computed in fp32, where the model has W
/// beside an adapter. \ref save_adapter writes the adapters alone.
/// \throws Error (unsupported) for a type that files do not have; (invalid_argument) without a type
///         and a source, and when there were calls since the last step; and like \ref
///         CheckpointWriter, \ref copy_files and `for_each_parameter`.
template <class Trainer>
void save_weights(Trainer& trainer,
                  TensorNames const& names,
                  std::filesystem::path const& folder,
                  SavedWeights const& saved,
                  WorkerPool& pool) {
  LoraMerge merge(trainer, names.lora());
  std::vector<TensorInfo> tensors;
  for (auto const& parameter : trainer.state().parameters) {
    if (nn::is_lora_parameter(parameter.name)) {
      continue;
    }
    auto const& name = names.theirs(parameter.name);
    if (!saved.type) {
      require(saved.source != nullptr,
              Errc::invalid_argument,
              "weights are saved as a type, or as those of their source");
    }
    auto const type = saved.type ? saved.type : saved.source->at(name).info().type();
    tensors.push_back(tensor_info({name, parameter.weights.shape, type.value_or(DType::f32)}));
  }
  std::vector<StoredTensor> carried;
  if (saved.source != nullptr) {
    for (auto const& tensor : saved.source->tensors()) {
      if (auto const& name = tensor.info().name; !names.ours(name) && !names.is_copy(name)) {
        carried.push_back(tensor);
        tensors.push_back(tensor.info());
      }
    }
  }
  CheckpointWriter writer(folder, std::move(tensors), saved.files);
  copy_tensors(writer, carried, pool);
  trainer.for_each_parameter(
      [&](std::string const& name, Shape const&, HostSpan<float const> values) {
        if (!nn::is_lora_parameter(name)) {
          auto const merged = merge(name, values, pool);
          TensorWrite const write[] = {{names.theirs(name), std::as_bytes(merged), DType::f32}};
          write_tensors(writer, write, pool);
        }
      });
  if (saved.source != nullptr) {
    auto const& source = saved.source->path();
    copy_files(source, folder, files_beside_weights(source));
  }
  writer.finish();
}

}  // namespace roundpipe
