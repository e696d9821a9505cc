// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Fields that the configurations of several architectures have, with the meaning that
/// transformers gives them: rotary embeddings, windows and the sizes of heads.

#include <roundpipe/architectures/config_fields.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/nn/rope_scaling.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace roundpipe::architectures {

/// Reads the kind of scaling and its values from \p fields, `rope_scaling` or `rope_parameters`.
/// \throws Error (unsupported) for a kind or a member that is not known, (bad_file) for values that
///         describe no scaling.
[[nodiscard]] inline nn::RopeScaling read_rope_scaling(ConfigFields const& fields,
                                                       ConfigFields const& config) {
  using Kind = nn::RopeScaling::Kind;
  auto const* const kind_field = fields.has("rope_type") ? "rope_type" : "type";
  auto const kind = fields.text(kind_field, "default");
  std::vector<std::string> members{"rope_type", "type", "rope_theta", "partial_rotary_factor"};
  auto const with = [&](std::initializer_list<char const*> names) {
    members.insert(members.end(), names.begin(), names.end());
  };
  auto const original_context = [&] {
    auto const* const name = "original_max_position_embeddings";
    return config.has(name)   ? config.number(name)
           : fields.has(name) ? fields.number(name)
                              : config.number("max_position_embeddings");
  };
  nn::RopeScaling scaling;
  if (kind == "linear") {
    with({"factor"});
    scaling.kind = Kind::linear;
    scaling.factor = fields.number("factor");
  } else if (kind == "llama3") {
    with({"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
    scaling.kind = Kind::llama3;
    scaling.factor = fields.number("factor");
    scaling.low_freq_factor = fields.number("low_freq_factor");
    scaling.high_freq_factor = fields.number("high_freq_factor");
    scaling.original_max_position_embeddings = original_context();
  } else if (kind == "yarn") {
    with({"factor", "original_max_position_embeddings", "attention_factor", "beta_fast"});
    with({"beta_slow", "mscale", "mscale_all_dim", "truncate"});
    scaling.kind = Kind::yarn;
    scaling.original_max_position_embeddings = original_context();
    scaling.factor = fields.has("factor") ? fields.number("factor")
                                          : config.number("max_position_embeddings") /
                                                scaling.original_max_position_embeddings;
    scaling.beta_fast = fields.number("beta_fast", scaling.beta_fast);
    scaling.beta_slow = fields.number("beta_slow", scaling.beta_slow);
    if (fields.has("attention_factor")) {
      scaling.attention_factor = fields.number("attention_factor");
    }
    scaling.mscale = fields.number("mscale", 0);
    scaling.mscale_all_dim = fields.number("mscale_all_dim", 0);
    scaling.truncate = fields.flag("truncate", true);
  } else if (kind != "default") {
    throw fields.unsupported(kind_field, "default, linear, llama3 or yarn");
  }
  for (auto const& [name, value] : fields.json().items()) {
    if (!value.is_null() && std::find(members.begin(), members.end(), name) == members.end()) {
      throw fields.unsupported(name, "rotary scaling without it");
    }
  }
  if (fields.number("partial_rotary_factor", 1) != 1) {
    throw fields.unsupported("partial_rotary_factor", "1");
  }
  try {
    scaling.check();
  } catch (Error const& error) {
    throw fields.bad(kind_field, "is not possible: " + error.message());
  }
  return scaling;
}

/// Reads the rotary embedding: `rope_theta` with `rope_scaling`, or `rope_parameters`, which newer
/// files have. \throws Error likewise.
inline void read_rope(ConfigFields const& fields, nn::TransformerConfig& config) {
  if (fields.number("partial_rotary_factor", 1) != 1) {
    throw fields.unsupported("partial_rotary_factor", "1");
  }
  config.rope_theta = fields.number("rope_theta", 10000);
  for (auto const* const name : {"rope_parameters", "rope_scaling"}) {  // the second one prevails
    if (auto const rope = fields.object(name); rope && !rope->json().empty()) {
      config.rope_theta = rope->number("rope_theta", fields.number("rope_theta", 10000));
      config.rope_scaling = read_rope_scaling(*rope, fields);
    }
  }
}

/// Reads which blocks have a window of \p window positions (0: none). Without `layer_types`, these
/// are the blocks from \p first on.
/// \throws Error (unsupported) when other blocks than the last ones have a window.
inline void read_windows(ConfigFields const& fields,
                         std::int64_t window,
                         std::int64_t first,
                         nn::TransformerConfig& config) {
  auto full = window == 0 ? config.layers : std::min(first, config.layers);
  if (auto const types = fields.texts("layer_types")) {
    if (types->size() != static_cast<std::size_t>(config.layers)) {
      throw fields.bad("layer_types",
                       "has " + std::to_string(types->size()) +
                           " elements, but num_hidden_layers is " + std::to_string(config.layers));
    }
    auto const begin = std::find_if(
        types->begin(), types->end(), [](auto const& type) { return type != "full_attention"; });
    if (!std::all_of(
            begin, types->end(), [](auto const& type) { return type == "sliding_attention"; })) {
      throw fields.unsupported("layer_types",
                               "full_attention for the first blocks, sliding_attention for all "
                               "behind them");
    }
    full = begin - types->begin();
    if (window == 0 && full < config.layers) {
      throw fields.bad("layer_types", "has sliding_attention, but there is no sliding_window");
    }
  }
  config.sliding_window = full < config.layers ? window : 0;
  config.full_attention_blocks = full < config.layers ? full : 0;
}

/// Reads windows as Qwen2 and Qwen3 describe them: `use_sliding_window`, `sliding_window`, and the
/// first block that has one, `max_window_layers`.
inline void read_late_windows(ConfigFields const& fields, nn::TransformerConfig& config) {
  bool const used = fields.flag("use_sliding_window", false) && !fields.is_null("sliding_window");
  read_windows(fields,
               used ? fields.size("sliding_window", 4096) : 0,
               fields.count("max_window_layers", 28),
               config);
}

}  // namespace roundpipe::architectures
