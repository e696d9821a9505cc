// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The model of a command line, opened and checked.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/io/checkpoint_folder.hpp>

#include "options.hpp"

namespace generate {

struct Model {
  roundpipe::ModelConfig config;  ///< With adapters and types as they run. All weights are frozen.
  roundpipe::TensorNames names;
  roundpipe::CheckpointFolder checkpoint;
  roundpipe::BatchShape capacity;  ///< The longest text.
};

/// \throws roundpipe::Error for a folder that is missing, damaged or of another kind, and for a
///         prompt that the model cannot read.
[[nodiscard]] Model open_model(Options const& o);

}  // namespace generate
