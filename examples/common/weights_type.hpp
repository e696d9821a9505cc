// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The type of a checkpoint's weights.

#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/io/checkpoint_folder.hpp>

namespace examples {

/// The type of the table of tokens, which stands for all weights; f32 for one that no parameter can
/// have. \throws roundpipe::Error (bad_file) when \p checkpoint has no such table.
[[nodiscard]] inline roundpipe::DType weights_type(roundpipe::CheckpointFolder const& checkpoint,
                                                   roundpipe::TensorNames const& names) {
  using enum roundpipe::DType;
  auto const type = checkpoint.at(names.pairs().front().theirs).info().type();
  return type == bf16 || type == f16 ? *type : f32;
}

}  // namespace examples
