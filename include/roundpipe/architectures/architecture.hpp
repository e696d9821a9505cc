// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the library knows of an architecture whose checkpoints it reads: how to read a
/// configuration, and how tensors are called.

#include <roundpipe/architectures/config_fields.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace roundpipe {

/// What a model's config.json says.
struct ModelConfig {
  std::string model_type;             ///< As "llama".
  nn::TransformerConfig transformer;  ///< Resolved; storage and parameters are f32.
  std::int64_t longest_context = 0;   ///< Positions that the model is made for.
  std::optional<DType> dtype = {};    ///< Of the weights in the files; none where it is not said.
};

namespace architectures {

/// One tensor of a checkpoint, or one for each block.
struct TensorName {
  enum class Place { embedding, block, head };

  Place place = Place::block;
  /// As its layer calls it.
  std::string_view ours;
  /// In the files; '#' stands for the number of the block.
  std::string_view theirs;
  /// Whether a model of this configuration has it. Null: always.
  bool (*exists)(nn::TransformerConfig const&) = nullptr;
};

// What the tables of tensors say.
using enum TensorName::Place;

[[nodiscard]] inline bool is_untied(nn::TransformerConfig const& config) {
  return !config.tied;
}
[[nodiscard]] inline bool has_attention_bias(nn::TransformerConfig const& config) {
  return config.attention_bias;
}
[[nodiscard]] inline bool has_output_bias(nn::TransformerConfig const& config) {
  return config.output_bias;
}
[[nodiscard]] inline bool has_mlp_bias(nn::TransformerConfig const& config) {
  return config.mlp_bias;
}

/// An architecture. Each is a file of its own, and a line in \ref known_architectures.
struct Architecture {
  std::string_view model_type;  ///< The field of config.json that tells it from others.
  std::string_view class_name;  ///< Its language model, in the field `architectures`.
  /// Reads what \ref read_model_config does not read for all of them.
  void (*read)(ConfigFields const& fields, ModelConfig& config);
  /// A table of all tensors.
  std::span<TensorName const> tensors;
};

}  // namespace architectures

}  // namespace roundpipe
