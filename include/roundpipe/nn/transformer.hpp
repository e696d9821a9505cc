// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A whole decoder-only transformer as a model.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/nn/language_model_head.hpp>
#include <roundpipe/nn/name_pattern.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_block.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace roundpipe::nn {

/// A model: TokenEmbedding, `config.layers` times TransformerBlock, LanguageModelHead. The batch
/// brings `tokens` and `labels`, both i32 [rows, length].
template <Ops O>
class Transformer {
 public:
  /// The first `config.frozen_blocks` blocks are frozen, and the first
  /// `config.full_attention_blocks` have no sliding window.
  /// \throws Error (invalid_argument) as TransformerConfig::resolved() does, and for a pattern of
  ///         `config.frozen_parameters` or `config.lora.targets` that matches nothing.
  explicit Transformer(TransformerConfig const& config) : embedding_(config), head_(config) {
    auto const resolved = config.resolved();
    auto unlimited = resolved;
    unlimited.sliding_window = 0;
    for (std::int64_t i = 0; i < resolved.layers; ++i) {
      auto const& of_block = i < resolved.full_attention_blocks ? unlimited : resolved;
      blocks_.emplace_back(of_block, i < resolved.frozen_blocks, i + 1);
      bool const same = i > 0 && blocks_[run_of_block_.back()].is_copy(blocks_.back());
      run_of_block_.push_back(same ? run_of_block_.back() : blocks_.size() - 1);
    }
    check_patterns(resolved);
  }

  [[nodiscard]] std::size_t layer_count() const noexcept { return blocks_.size() + 2; }

  /// Calls \p f with layer number \p id and returns what it returns; \p f must return the same
  /// type for every layer type. Precondition: the layer exists.
  template <class F>
    requires std::invocable<F&, TokenEmbedding<O> const&> &&
             std::invocable<F&, TransformerBlock<O> const&> &&
             std::invocable<F&, LanguageModelHead<O> const&>
  decltype(auto) visit(LayerId id, F&& f) const {
    if (id.index() == 0) {
      return f(embedding_);
    }
    if (id.index() <= blocks_.size()) {
      return f(blocks_[id.index() - 1]);
    }
    return f(head_);
  }

  /// A number that the embedding, the head, and consecutive blocks that are copies of each other
  /// have for themselves. Precondition: the layer exists.
  [[nodiscard]] std::size_t run_of(LayerId id) const noexcept {
    bool const is_block = id.index() > 0 && id.index() <= blocks_.size();
    return is_block ? run_of_block_[id.index() - 1] + 1 : id.index();
  }

 private:
  void check_patterns(TransformerConfig const& config) const {
    std::vector<std::string> parameters;  // shared ones once, as trainers name them
    std::vector<std::string> maps;
    std::string const embedding = "0.embed_tokens";
    for (std::size_t i = 0; i < layer_count(); ++i) {
      visit(LayerId(i), [&](auto const& layer) {
        for (ParameterSpec const& spec : layer.parameters()) {
          auto const name = std::to_string(i) + "." + spec.tensor.name;
          if (i == 0 || spec.sharing_key.empty()) {
            parameters.push_back(name);
          }
          if (i > 0 && spec.sharing_key.empty() && spec.tensor.shape.rank() == 2 &&
              !is_lora_parameter(name)) {
            maps.push_back(name.substr(0, name.rfind('.')));
          }
        }
      });
    }
    auto const check = [&](char const* field, std::string const& pattern, auto const& names) {
      if (std::none_of(names.begin(), names.end(), [&](auto const& name) {
            return matches_name(pattern, name);
          })) {
        auto const hint = &names == &maps && matches_name(pattern, embedding)
                              ? "; an embedding is no linear map"
                          : &names == &maps && config.tied && matches_name(pattern, "lm_head")
                              ? "; the head is tied to the embedding's table"
                              : "";
        throw Error(Errc::invalid_argument,
                    "TransformerConfig::" + std::string(field) + ": '" + pattern +
                        "' matches nothing; there are " + names.front() + " to " + names.back() +
                        hint);
      }
    };
    for (auto const& pattern : config.frozen_parameters) {
      check("frozen_parameters", pattern, parameters);
    }
    for (std::size_t i = 0; config.lora.rank > 0 && i < config.lora.targets.size(); ++i) {
      check("lora.targets", config.lora.targets[i], maps);
    }
  }

  TokenEmbedding<O> embedding_;
  std::vector<TransformerBlock<O>> blocks_;
  std::vector<std::size_t> run_of_block_;  // the first block of each block's run
  LanguageModelHead<O> head_;
};

/// The model of \p config. \throws Error (invalid_argument) as \ref Transformer does.
template <Ops O>
[[nodiscard]] Transformer<O> transformer(TransformerConfig const& config) {
  return Transformer<O>(config);
}

}  // namespace roundpipe::nn
