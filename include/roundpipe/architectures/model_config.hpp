// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads the config.json of a checkpoint.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/architectures/config_fields.hpp>
#include <roundpipe/architectures/decoder_fields.hpp>
#include <roundpipe/architectures/known_architectures.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace roundpipe {

namespace architectures {

/// Far more than any model has.
inline constexpr std::int64_t most_layers = 1 << 14;

/// \throws Error (unsupported) for a model that is not known, which lists those that are.
[[nodiscard]] inline Architecture const& architecture_of(ConfigFields const& fields) {
  auto const type = fields.text("model_type", "");
  if (type.empty()) {
    throw fields.bad("model_type", "is missing");
  }
  auto const* const architecture = find_architecture(type);
  if (architecture == nullptr) {
    throw fields.unsupported("model_type", "one of " + architecture_names());
  }
  auto const classes = fields.texts("architectures");
  if (classes && !classes->empty() &&
      std::find(classes->begin(), classes->end(), architecture->class_name) == classes->end()) {
    throw fields.unsupported("architectures", std::string(architecture->class_name));
  }
  return *architecture;
}

/// The type of the weights, if `dtype`, or `torch_dtype` of older files, names one that parameters
/// may have.
[[nodiscard]] inline std::optional<DType> dtype_of_weights(ConfigFields const& fields) {
  auto const name = fields.text("dtype", fields.text("torch_dtype", ""));
  return name == "float32"    ? std::optional(DType::f32)
         : name == "bfloat16" ? std::optional(DType::bf16)
         : name == "float16"  ? std::optional(DType::f16)
                              : std::nullopt;
}

}  // namespace architectures

/// What \p json, the content of \p file, says. Fields that transformers does not read for the
/// architecture have no effect here, either.
/// \throws Error (unsupported) that names the field, for an architecture that is not known, which
///         lists the known ones, and for a feature that the library does not compute; (bad_file)
///         for a field that is missing, or that says nothing sensible.
[[nodiscard]] inline ModelConfig read_model_config(nlohmann::json const& json,
                                                   std::string const& file) {
  architectures::ConfigFields const fields(json, file);
  auto const& architecture = architectures::architecture_of(fields);
  fields.refuse({"quantization_config", "auto_map"});
  if (fields.text("hidden_act", "silu") != "silu") {
    throw fields.unsupported("hidden_act", "silu");
  }
  if (fields.number("attention_dropout", 0) != 0) {
    throw fields.unsupported("attention_dropout", "0");
  }
  ModelConfig config;
  config.model_type = architecture.model_type;
  config.longest_context = fields.size("max_position_embeddings");
  config.dtype = architectures::dtype_of_weights(fields);
  auto& c = config.transformer;
  c.vocabulary = fields.size("vocab_size");
  c.hidden = fields.size("hidden_size");
  c.layers = fields.size("num_hidden_layers");
  if (c.layers > architectures::most_layers) {  // before anyone makes a list of them
    throw fields.bad("num_hidden_layers",
                     "is " + std::to_string(c.layers) + ", more than " +
                         std::to_string(architectures::most_layers));
  }
  c.heads = fields.size("num_attention_heads");
  c.intermediate = fields.size("intermediate_size");
  c.norm_epsilon = fields.number("rms_norm_eps", 1e-6);
  c.initial_deviation = fields.number("initializer_range", c.initial_deviation);
  c.tied = fields.flag("tie_word_embeddings", false);
  architectures::read_rope(fields, c);
  architecture.read(fields, config);
  try {
    c = c.resolved();
  } catch (Error const& error) {
    throw bad_file(file, "the model", "is not possible: " + error.message());
  }
  return config;
}

/// Reads "config.json" of \p folder. \throws Error likewise, and like \ref read_json.
[[nodiscard]] inline ModelConfig read_model_config(std::filesystem::path const& folder) {
  auto const file = folder / "config.json";
  return read_model_config(read_json(file), file.string());
}

}  // namespace roundpipe
