// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The sizes of a transformer, dense or mixture-of-experts, and a table of known ones.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace roundpipe {

/// The sizes that determine costs and bytes of a transformer: equal layers, then a language-model
/// head. Dense models have one expert, the MLP, and no router. The estimates of this room ignore
/// norms and the embedding, and so the two flags.
struct ModelShape {
  std::string name;
  std::int64_t hidden = 0;  ///< h
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;  ///< f: of one expert.
  std::int64_t layers = 0;
  std::int64_t vocabulary = 0;      ///< V
  std::int64_t experts = 1;         ///< E
  std::int64_t active_experts = 1;  ///< k: the number of experts that a token visits.
  bool query_key_norm = false;      ///< Whether each query and key head is normed.
  bool tied = false;                ///< Whether the head uses the embedding's table.

  /// h_kv: the width of the concatenated key (or value) heads.
  [[nodiscard]] constexpr std::int64_t kv_width() const noexcept { return kv_heads * head_dim; }
  /// Whether a router chooses among experts.
  [[nodiscard]] constexpr bool routes() const noexcept { return experts > 1; }
  friend bool operator==(ModelShape const&, ModelShape const&) = default;
};

/// \throws Error (invalid_argument) unless \p shape is a transformer: each size is positive and
/// fits 32 bits, key/value heads divide heads, and no more experts are active than exist.
void check_shape(ModelShape const& shape);

/// The models on which RoundPipe (arXiv:2604.27085) was measured.
/// The sizes are from the models' published configurations.
[[nodiscard]] std::span<ModelShape const> known_model_shapes();

/// The shape with the name \p name. \throws Error (invalid_argument) with a list of the known
/// names.
[[nodiscard]] ModelShape model_shape(std::string_view name);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/estimate/impl/model_shape.ipp>
#endif
