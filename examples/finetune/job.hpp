// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a command line asks for, opened and checked before any device is touched.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/data/dataset.hpp>
#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/snapshots/snapshot.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "options.hpp"

namespace finetune {

/// The model, its weights on disk, and the data.
struct Job {
  roundpipe::ModelConfig model;  ///< With the types of the training.
  roundpipe::TensorNames names;
  roundpipe::CheckpointFolder checkpoint;
  roundpipe::Dataset data;
  std::uint64_t evaluated_rows = 0;  ///< Of the held-out rows, or where there are none, of all.
  std::int64_t steps = 0;            ///< Of the whole training.
  std::filesystem::path output;
  std::optional<roundpipe::DType> output_type;  ///< None: as in the checkpoint.
  std::optional<roundpipe::Snapshot> snapshot;  ///< To go on from.

  [[nodiscard]] std::filesystem::path snapshots() const { return output / "snapshots"; }
  /// Whether weights as they are written differ from those that the devices have computed with.
  [[nodiscard]] bool narrows_weights() const;
};

/// Opens all that \p o names; an operation of all ranks with `--resume`. Sets its precision and its
/// context where they are chosen.
/// \throws roundpipe::Error for folders and files that are missing, damaged, or of another kind,
/// for
///         tokens that the model does not have, and for options that do not fit the model.
[[nodiscard]] Job prepare(Options& o);

}  // namespace finetune
