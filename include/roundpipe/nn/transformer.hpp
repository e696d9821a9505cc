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

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe::nn {

/// The model: TokenEmbedding, `config.layers` times TransformerBlock, LanguageModelHead. The first
/// `config.frozen_blocks` blocks are frozen, and the first `config.full_attention_blocks` have no
/// sliding window. The batch brings `tokens` and `labels`, both i32 [rows, length].
/// \throws Error (invalid_argument) as TransformerConfig::resolved() does.
template <Ops O>
[[nodiscard]] auto transformer(TransformerConfig const& config) {
  auto const resolved = config.resolved();  // checks the counts
  auto const frozen = resolved.frozen_blocks;
  auto const full = resolved.full_attention_blocks;
  auto unlimited = resolved;
  unlimited.sliding_window = 0;
  // The blocks from first to last, which are alike.
  auto const blocks = [&](std::int64_t first, std::int64_t last) {
    return repeat(static_cast<std::size_t>(last - first),
                  TransformerBlock<O>{first < full ? unlimited : resolved, first < frozen});
  };
  return Sequential{TokenEmbedding<O>{config},
                    blocks(0, std::min(frozen, full)),
                    blocks(std::min(frozen, full), std::max(frozen, full)),
                    blocks(std::max(frozen, full), resolved.layers),
                    LanguageModelHead<O>{config}};
}

}  // namespace roundpipe::nn
