// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The tensors that a model's layers read from a batch, each once.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// The named tensors of a batch, per micro-batch, and which layer reads which.
struct BatchLayout {
  TensorTable tensors;                             ///< At capacity.
  std::vector<std::vector<std::size_t>> of_layer;  ///< By layer, by side input: index above.
};

/// Collects the side inputs of all layers by name.
/// \throws Error (invalid_argument) when two layers want different tensors under one name.
[[nodiscard]] BatchLayout lay_out_batch(ModelDescription const& model);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/batch_layout.ipp>
#endif
