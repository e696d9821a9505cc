// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The work of training a transformer, for the share of a device's peak that it reaches.

#include <roundpipe/nn/transformer_config.hpp>

#include <cstdint>

namespace examples {

/// The least FLOPs that training takes for \p tokens tokens in sequences of \p context: 6 for each
/// weight of a product and token, and causal attention's two products of half the square of the
/// context, forward and twice backward. Precondition: \p config is resolved.
[[nodiscard]] inline double model_flops(roundpipe::nn::TransformerConfig const& config,
                                        std::int64_t context,
                                        double tokens) {
  auto const number = [](std::int64_t n) { return static_cast<double>(n); };
  auto const block =
      number(config.hidden) *
      number(2 * config.query_width() + 2 * config.kv_width() + 3 * config.intermediate);
  auto const weights =
      number(config.layers) * block + number(config.hidden) * number(config.vocabulary);
  auto const attention =
      6 * number(config.layers) * number(config.query_width()) * number(context) * tokens;
  return 6 * weights * tokens + attention;
}

}  // namespace examples
