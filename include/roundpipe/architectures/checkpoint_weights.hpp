// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Weights go from a checkpoint's folder into a trainer, and from a trainer into a folder.

#include <roundpipe/architectures/lora_merge.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/io/carried_files.hpp>
#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/io/checkpoint_writer.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/io/tensor_transfer.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// Replaces every parameter but the low-rank adapters of \p trainer, a `Pipeline` or
/// `SerialTrainer` of `nn::transformer`, by the tensor of \p checkpoint that \p names names: in all
/// copies, converted, one after another by all threads of \p pool. Needs memory for one tensor in
/// fp32. Optimizer states stay.
/// \throws Error (bad_file) for a tensor that is missing or has another shape; (unsupported) for
///         one whose type has no fp32 value; and like \ref read_tensors and `write_parameter`.
template <class Trainer>
void load_weights(Trainer& trainer,
                  TensorNames const& names,
                  CheckpointFolder const& checkpoint,
                  WorkerPool& pool) {
  struct Known {
    std::string name;
    StoredTensor tensor;
  };
  std::vector<Known> known;  // all are checked before the first one is replaced
  trainer.for_each_parameter([&](std::string const& name, Shape const& shape, auto const&) {
    if (nn::is_lora_parameter(name)) {
      return;
    }
    auto const tensor = checkpoint.at(names.theirs(name));
    auto const wanted = tensor_info({tensor.info().name, shape, DType::f32});
    if (tensor.info().extents != wanted.extents) {
      throw bad_file(tensor.file().file().path().string(),
                     "tensor " + in_quotes(wanted.name),
                     "is " + to_string(tensor.info()) + ", but the model has " + to_string(shape));
    }
    known.push_back({name, tensor});
  });
  std::vector<float> values;
  for (auto const& [name, tensor] : known) {
    values.resize(tensor.info().size());
    HostArray const to{reinterpret_cast<std::byte*>(values.data()), values.size(), DType::f32};
    TensorRead const read[] = {{tensor, to}};
    read_tensors(read, pool);
    trainer.write_parameter(name, values);
  }
}

/// What \ref save_weights writes.
struct SavedWeights {
  DType type = DType::bf16;  ///< Of the model's tensors.
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
/// \throws Error (unsupported) for a type that files do not have; (invalid_argument) when there
/// were
///         calls since the last step; and like \ref CheckpointWriter, \ref copy_files and
///         `for_each_parameter`.
template <class Trainer>
void save_weights(Trainer& trainer,
                  TensorNames const& names,
                  std::filesystem::path const& folder,
                  SavedWeights const& saved,
                  WorkerPool& pool) {
  LoraMerge merge(trainer, names.lora());
  std::vector<TensorInfo> tensors;
  trainer.for_each_parameter([&](std::string const& name, Shape const& shape, auto const&) {
    if (!nn::is_lora_parameter(name)) {
      tensors.push_back(tensor_info({names.theirs(name), shape, saved.type}));
    }
  });
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
