// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The sizes of a transformer, dense or mixture-of-experts, and a table of known ones.

#include <roundpipe/core/error.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace roundpipe {

/// What costs and bytes of a transformer depend on: equal layers, then a language-model head.
/// Dense models have one expert, the MLP, and no router.
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
  std::int64_t active_experts = 1;  ///< k: the experts that a token visits.

  /// h_kv: the width of the concatenated key (or value) heads.
  [[nodiscard]] constexpr std::int64_t kv_width() const noexcept { return kv_heads * head_dim; }
  /// Whether a router chooses among experts.
  [[nodiscard]] constexpr bool routes() const noexcept { return experts > 1; }
  friend bool operator==(ModelShape const&, ModelShape const&) = default;
};

/// \throws Error (invalid_argument) when \p shape makes no transformer: each size is positive and
///         fits 32 bits, key/value heads divide heads, no more experts are active than there are.
inline void check_shape(ModelShape const& shape) {
  auto const fail = [&](std::string const& what) {
    throw Error(Errc::invalid_argument, "model shape '" + shape.name + "': " + what);
  };
  std::pair<char const*, std::int64_t> const sizes[] = {{"hidden", shape.hidden},
                                                        {"heads", shape.heads},
                                                        {"kv_heads", shape.kv_heads},
                                                        {"head_dim", shape.head_dim},
                                                        {"intermediate", shape.intermediate},
                                                        {"layers", shape.layers},
                                                        {"vocabulary", shape.vocabulary},
                                                        {"experts", shape.experts},
                                                        {"active_experts", shape.active_experts}};
  for (auto const& [name, size] : sizes) {
    if (size < 1 || size > std::numeric_limits<std::int32_t>::max()) {
      fail(std::string(name) + " is " + std::to_string(size) +
           ", but must be positive and fit 32 bits");
    }
  }
  if (shape.heads % shape.kv_heads != 0) {
    fail("kv_heads = " + std::to_string(shape.kv_heads) +
         " does not divide heads = " + std::to_string(shape.heads));
  }
  if (shape.active_experts > shape.experts) {
    fail("active_experts = " + std::to_string(shape.active_experts) +
         " is more than experts = " + std::to_string(shape.experts));
  }
}

/// The models that RoundPipe (arXiv:2604.27085) is measured with.
/// Sizes are from the models' published configurations.
[[nodiscard]] inline std::span<ModelShape const> known_model_shapes() {
  static std::array<ModelShape, 5> const shapes{{
      {.name = "qwen3-1.7b",
       .hidden = 2048,
       .heads = 16,
       .kv_heads = 8,
       .head_dim = 128,
       .intermediate = 6144,
       .layers = 28,
       .vocabulary = 151936},
      {.name = "llama3.1-8b",
       .hidden = 4096,
       .heads = 32,
       .kv_heads = 8,
       .head_dim = 128,
       .intermediate = 14336,
       .layers = 32,
       .vocabulary = 128256},
      {.name = "gpt-oss-20b",
       .hidden = 2880,
       .heads = 64,
       .kv_heads = 8,
       .head_dim = 64,
       .intermediate = 2880,
       .layers = 24,
       .vocabulary = 201088,
       .experts = 32,
       .active_experts = 4},
      {.name = "qwen3-32b",
       .hidden = 5120,
       .heads = 64,
       .kv_heads = 8,
       .head_dim = 128,
       .intermediate = 25600,
       .layers = 64,
       .vocabulary = 151936},
      {.name = "qwen3-235b-a22b",
       .hidden = 4096,
       .heads = 64,
       .kv_heads = 4,
       .head_dim = 128,
       .intermediate = 1536,
       .layers = 94,
       .vocabulary = 151936,
       .experts = 128,
       .active_experts = 8},
  }};
  return shapes;
}

/// The shape called \p name. \throws Error (invalid_argument) listing the names that there are.
[[nodiscard]] inline ModelShape model_shape(std::string_view name) {
  std::string names;
  for (auto const& shape : known_model_shapes()) {
    if (shape.name == name) {
      return shape;
    }
    names += (names.empty() ? "" : ", ") + shape.name;
  }
  std::string message = "no model shape is called '";
  message.append(name).append("'; known are ").append(names);
  throw Error(Errc::invalid_argument, message);
}

}  // namespace roundpipe
