// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief adapter_config.json, with which peft describes low-rank adapters.

#include <roundpipe/architectures/config_fields.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/nn/name_pattern.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// What adapter_config.json says.
struct AdapterConfig {
  nn::LoraConfig lora;     ///< Resolved.
  std::string base_model;  ///< The folder or the hub's name of the base model; may be empty.
};

namespace architectures {

/// A linear map of a model.
struct LinearMap {
  std::string ours;    ///< "1.self_attn.q_proj"
  std::string theirs;  ///< "model.layers.0.self_attn.q_proj"
  bool adapts = false;

  /// Its name in any block: "q_proj".
  [[nodiscard]] std::string kind() const { return ours.substr(ours.rfind('.') + 1); }
};

/// All linear maps of the model.
[[nodiscard]] inline std::vector<LinearMap> linear_maps(TensorNames const& names) {
  std::vector<LinearMap> maps;
  for (auto const& [ours, theirs] : names.pairs()) {
    if (ours.ends_with("_proj.weight") || ours.ends_with(".lm_head.weight")) {
      maps.push_back({ours.substr(0, ours.rfind('.')), theirs.substr(0, theirs.rfind('.'))});
    }
  }
  return maps;
}

/// Names that select the maps that \ref LinearMap::adapts and no others: "q_proj" where all blocks
/// have an adapter there, else each map by itself, by the name that \p name_of tells.
template <class F>
[[nodiscard]] std::vector<std::string> targets_of(std::vector<LinearMap> const& maps, F name_of) {
  std::map<std::string, bool> all_of_kind;
  for (auto const& map : maps) {
    auto& every = all_of_kind.emplace(map.kind(), true).first->second;
    every = every && map.adapts;
  }
  std::vector<std::string> targets;
  for (auto const& map : maps) {
    if (map.adapts) {
      targets.push_back(all_of_kind[map.kind()] ? map.kind() : name_of(map));
    }
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

/// Whether a field asks for nothing: null, false, or an empty list, object or text.
[[nodiscard]] inline bool asks_nothing(nlohmann::json const& value) {
  return value.is_null() || value == false || (!value.is_primitive() && value.empty()) ||
         value == "";
}

/// Reads target_modules as peft does: a map has an adapter when its name is one of the list, or
/// ends in a dot and one of the list; "all-linear" are all maps but the head.
[[nodiscard]] inline std::vector<std::string> read_targets(ConfigFields const& fields,
                                                           TensorNames const& names) {
  auto maps = linear_maps(names);
  auto const& json = fields.json();
  auto const field = json.find("target_modules");
  if (field != json.end() && field->is_string()) {
    if (*field != "all-linear") {
      throw fields.unsupported("target_modules", "a list of names, or all-linear");
    }
    for (auto& map : maps) {
      map.adapts = map.kind() != "lm_head";
    }
  } else {
    auto const targets = fields.texts("target_modules");
    if (!targets || targets->empty()) {
      throw fields.bad("target_modules", "names no linear map");
    }
    for (auto const& target : *targets) {
      bool found = false;
      for (auto& map : maps) {
        if (map.theirs == target || map.theirs.ends_with("." + target)) {
          map.adapts = found = true;
        }
      }
      if (!found) {
        throw fields.bad("target_modules",
                         "names " + in_quotes(target) + ", which is no linear map of the model");
      }
    }
  }
  return targets_of(maps, [](LinearMap const& map) { return map.ours; });
}

}  // namespace architectures

/// What \p json, the content of \p file, says of adapters for the model of \p names.
/// \throws Error (unsupported) that names the field, for what peft has and the library has not: any
///         field that it does not know and that says more than null, false or nothing; (bad_file)
///         for a field that is missing or says nothing sensible, and for a map that the model does
///         not have.
[[nodiscard]] inline AdapterConfig read_adapter_config(nlohmann::json const& json,
                                                       std::string const& file,
                                                       TensorNames const& names) {
  architectures::ConfigFields const fields(json, file);
  if (fields.text("peft_type", "") != "LORA") {
    throw fields.unsupported("peft_type", "LORA");
  }
  if (fields.text("task_type", "CAUSAL_LM") != "CAUSAL_LM") {
    throw fields.unsupported("task_type", "CAUSAL_LM");
  }
  if (fields.text("bias", "none") != "none") {
    throw fields.unsupported("bias", "none");
  }
  // Other ways to begin change the base model, too.
  if (auto const init = json.find("init_lora_weights");
      init != json.end() && !init->is_boolean() && *init != "gaussian") {
    throw fields.unsupported("init_lora_weights", "true, false or gaussian");
  }
  static constexpr std::string_view known[] = {"peft_type",
                                               "task_type",
                                               "bias",
                                               "init_lora_weights",
                                               "r",
                                               "lora_alpha",
                                               "lora_dropout",
                                               "use_rslora",
                                               "target_modules",
                                               "base_model_name_or_path",
                                               // What they say is no part of the model:
                                               "auto_mapping",
                                               "inference_mode",
                                               "megatron_core",
                                               "peft_version",
                                               "qalora_group_size",
                                               "revision",
                                               "runtime_config"};
  for (auto const& [name, value] : json.items()) {
    if (std::find(std::begin(known), std::end(known), name) == std::end(known) &&
        !architectures::asks_nothing(value)) {
      throw fields.unsupported(name, "a configuration without it");
    }
  }
  AdapterConfig config;
  config.base_model = fields.text("base_model_name_or_path", "");
  config.lora.rank = fields.size("r");
  config.lora.alpha = fields.number("lora_alpha");
  if (config.lora.alpha <= 0) {
    throw fields.bad("lora_alpha", "must be positive");
  }
  config.lora.dropout = fields.number("lora_dropout", 0);
  if (config.lora.dropout < 0 || config.lora.dropout >= 1) {
    throw fields.bad("lora_dropout", "must be at least 0 and less than 1");
  }
  config.lora.use_rslora = fields.flag("use_rslora", false);
  config.lora.targets = architectures::read_targets(fields, names);
  return config;
}

/// Reads "adapter_config.json" of \p folder. \throws Error likewise, and like \ref read_json.
[[nodiscard]] inline AdapterConfig read_adapter_config(std::filesystem::path const& folder,
                                                       TensorNames const& names) {
  auto const file = folder / "adapter_config.json";
  return read_adapter_config(read_json(file), file.string(), names);
}

/// The text of an adapter_config.json that peft and \ref read_adapter_config read.
/// \param names of the model, of which \p config is a part.
[[nodiscard]] inline std::string adapter_config_text(AdapterConfig const& config,
                                                     TensorNames const& names) {
  auto maps = architectures::linear_maps(names);
  for (auto& map : maps) {
    map.adapts = nn::any_matches_name(config.lora.targets, map.ours);
  }
  nlohmann::json json{
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"inference_mode", true},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"init_lora_weights", true},
      {"r", config.lora.rank},
      {"lora_alpha", config.lora.alpha},
      {"lora_dropout", config.lora.dropout},
      {"use_rslora", config.lora.use_rslora},
      {"modules_to_save", nullptr},
      {"target_modules",
       architectures::targets_of(maps, [](auto const& map) { return map.theirs; })},
      {"base_model_name_or_path", nullptr},
  };
  if (config.lora.alpha == std::floor(config.lora.alpha) && config.lora.alpha < 0x1p53) {
    json["lora_alpha"] = static_cast<std::int64_t>(config.lora.alpha);
  }
  if (!config.base_model.empty()) {
    json["base_model_name_or_path"] = config.base_model;
  }
  return json.dump(2) + "\n";
}

}  // namespace roundpipe
