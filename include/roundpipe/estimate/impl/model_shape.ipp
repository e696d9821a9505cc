// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE void check_shape(ModelShape const& shape) {
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

ROUNDPIPE_INLINE std::span<ModelShape const> known_model_shapes() {
  static std::array<ModelShape, 5> const shapes{{
      {.name = "qwen3-1.7b",
       .hidden = 2048,
       .heads = 16,
       .kv_heads = 8,
       .head_dim = 128,
       .intermediate = 6144,
       .layers = 28,
       .vocabulary = 151936,
       .query_key_norm = true,
       .tied = true},
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
       .vocabulary = 151936,
       .query_key_norm = true},
      {.name = "qwen3-235b-a22b",
       .hidden = 4096,
       .heads = 64,
       .kv_heads = 4,
       .head_dim = 128,
       .intermediate = 1536,
       .layers = 94,
       .vocabulary = 151936,
       .experts = 128,
       .active_experts = 8,
       .query_key_norm = true},
  }};
  return shapes;
}

ROUNDPIPE_INLINE ModelShape model_shape(std::string_view name) {
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
