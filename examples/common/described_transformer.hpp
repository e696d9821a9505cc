// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A transformer of a known shape that is planned for, and never runs.

#include <common/described_ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/nn/transformer.hpp>

namespace examples {

/// The transformer of \p shape, with bf16 parameters and activations.
[[nodiscard]] inline auto described_transformer(roundpipe::ModelShape const& shape) {
  return roundpipe::nn::transformer<DescribedOps>({.vocabulary = shape.vocabulary,
                                                   .hidden = shape.hidden,
                                                   .layers = shape.layers,
                                                   .heads = shape.heads,
                                                   .kv_heads = shape.kv_heads,
                                                   .head_dim = shape.head_dim,
                                                   .intermediate = shape.intermediate,
                                                   .query_key_norm = shape.query_key_norm,
                                                   .tied = shape.tied,
                                                   .storage = roundpipe::DType::bf16,
                                                   .parameter = roundpipe::DType::bf16});
}

}  // namespace examples
