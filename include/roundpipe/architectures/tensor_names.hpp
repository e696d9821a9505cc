// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How the tensors of a checkpoint and the parameters of a model are called, both ways.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/architectures/known_architectures.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe {

/// The names of all parameters of `nn::transformer(config)`, as `for_each_parameter` tells them
/// ("1.self_attn.q_proj.weight" of the first block), and those of the checkpoint's tensors
/// ("model.layers.0.self_attn.q_proj.weight").
///
/// The head of a tied model has no projection of its own: there is the table of tokens alone. A
/// checkpoint may hold a copy of that table under the name of the projection (\ref is_copy), which
/// transformers does not use. So nobody should read or write one.
///
/// Low-rank adapters are no tensors of a checkpoint: \ref peft_name tells how peft calls theirs.
class TensorNames {
 public:
  struct Pair {
    std::string ours;
    std::string theirs;
  };

  /// \throws Error (unsupported) for an architecture that is not known.
  explicit TensorNames(ModelConfig const& config) {
    auto const* const architecture = find_architecture(config.model_type);
    if (architecture == nullptr) {
      throw Error(Errc::unsupported,
                  "the architecture '" + config.model_type + "' is not known; known are " +
                      architecture_names());
    }
    auto const& c = config.transformer;
    lora_ = c.lora.resolved();
    auto const add_all =
        [&](architectures::TensorName::Place place, std::int64_t layer, std::int64_t block) {
          for (auto const& tensor : architecture->tensors) {
            if (tensor.place == place) {
              add(tensor, c, layer, block);
            }
          }
        };
    add_all(architectures::embedding, 0, 0);
    for (std::int64_t block = 0; block < c.layers; ++block) {
      add_all(architectures::block, block + 1, block);
    }
    add_all(architectures::head, c.layers + 1, 0);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      by_ours_.emplace(pairs_[i].ours, i);
      by_theirs_.emplace(pairs_[i].theirs, i);
    }
  }

  /// All pairs, in the order of the layers.
  [[nodiscard]] std::span<Pair const> pairs() const noexcept { return pairs_; }

  /// The checkpoint's name of our parameter \p ours.
  /// \throws Error (invalid_argument) when the model has no such parameter.
  [[nodiscard]] std::string const& theirs(std::string_view ours) const {
    auto const found = by_ours_.find(std::string(ours));
    if (found == by_ours_.end()) {
      throw Error(Errc::invalid_argument, "the model has no parameter " + std::string(ours));
    }
    return pairs_[found->second].theirs;
  }
  /// What peft calls our matrix \p ours of an adapter, "1.self_attn.q_proj.lora_A.weight":
  /// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight".
  /// \throws Error (invalid_argument) when the model has no such linear map.
  [[nodiscard]] std::string peft_name(std::string_view ours) const {
    auto const matrix = ours.find(".lora_");
    require(matrix != std::string_view::npos,
            Errc::invalid_argument,
            "the parameter is no matrix of an adapter");
    auto name = theirs(std::string(ours.substr(0, matrix)) + ".weight");
    name.replace(name.rfind('.'), std::string::npos, ours.substr(matrix));
    return "base_model.model." + name;
  }
  /// The adapters that the model has; none where its rank is 0.
  [[nodiscard]] nn::LoraConfig const& lora() const noexcept { return lora_; }

  /// Our name of the checkpoint's tensor \p theirs; none for a tensor that the model does not have.
  [[nodiscard]] std::optional<std::string> ours(std::string_view theirs) const {
    auto const found = by_theirs_.find(std::string(theirs));
    return found == by_theirs_.end() ? std::nullopt : std::optional(pairs_[found->second].ours);
  }
  /// Whether the checkpoint's tensor \p theirs repeats another one, to which the model ties it.
  [[nodiscard]] bool is_copy(std::string_view theirs) const {
    return copies_.contains(std::string(theirs));
  }

 private:
  void add(architectures::TensorName const& tensor,
           nn::TransformerConfig const& config,
           std::int64_t layer,
           std::int64_t block) {
    std::string theirs(tensor.theirs);
    if (auto const at = theirs.find('#'); at != std::string::npos) {
      theirs.replace(at, 1, std::to_string(block));
    }
    if (tensor.exists == nullptr || tensor.exists(config)) {
      pairs_.push_back({std::to_string(layer) + "." + std::string(tensor.ours), std::move(theirs)});
    } else if (tensor.exists == architectures::is_untied) {
      copies_.insert(std::move(theirs));
    }
  }

  nn::LoraConfig lora_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::string, std::size_t> by_ours_;
  std::unordered_map<std::string, std::size_t> by_theirs_;
  std::set<std::string> copies_;
};

}  // namespace roundpipe
