// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A whole decoder-only transformer as a model.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/nn/language_model_head.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_block.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cstddef>

namespace roundpipe::nn {

/// The model: TokenEmbedding, `config.layers` times TransformerBlock, LanguageModelHead. The first
/// `config.frozen_blocks` blocks are frozen. The batch brings `tokens` and `labels`, both i32
/// [rows, length].
/// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
template <Ops O>
[[nodiscard]] auto transformer(TransformerConfig const& config) {
  auto const resolved = config.resolved();  // checks the counts
  auto const layers = static_cast<std::size_t>(resolved.layers);
  auto const frozen = static_cast<std::size_t>(resolved.frozen_blocks);
  return Sequential{TokenEmbedding<O>{config},
                    repeat(frozen, TransformerBlock<O>{config, true}),
                    repeat(layers - frozen, TransformerBlock<O>{config}),
                    LanguageModelHead<O>{config}};
}

}  // namespace roundpipe::nn
