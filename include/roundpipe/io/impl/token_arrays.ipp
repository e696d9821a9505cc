// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/token_arrays.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE void TokenArrays::add(HostSpan<std::int32_t const> tokens,
                                       HostSpan<std::int32_t const> labels) {
  auto const require = [&](bool good, std::string const& fault) {
    if (!good) {
      throw Error(Errc::invalid_argument, in_quotes(name_) + ": " + fault);
    }
  };
  require(!tokens.empty(), "input_ids holds no token");
  require(labels.empty() || labels.size() == tokens.size(),
          "labels has " + std::to_string(labels.size()) + " elements, input_ids " +
              std::to_string(tokens.size()));
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0) {
      require(false,
              "input_ids element " + std::to_string(i) + " is " + std::to_string(tokens[i]) +
                  ": want a token, 0 or more");
    }
    largest = std::max(largest, tokens[i]);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 && labels[i] != ignored_label) {
      require(false,
              "labels element " + std::to_string(i) + " is " + std::to_string(labels[i]) +
                  ": want a token, or " + std::to_string(ignored_label) + " for none");
    }
    largest = std::max(largest, labels[i]);
  }
  if (!has_labels_ && !labels.empty() && !std::ranges::equal(labels, tokens)) {
    has_labels_ = true;
    labels_.assign(tokens_.begin(), tokens_.end());
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (has_labels_) {
    auto const& own = labels.empty() ? tokens : labels;
    labels_.insert(labels_.end(), own.begin(), own.end());
  }
  documents_.push_back(tokens_.size());
  vocabulary_ = std::max(vocabulary_, static_cast<std::uint64_t>(largest) + 1);
}

ROUNDPIPE_INLINE TokenDocuments TokenArrays::view() const {
  if (size() == 0) {
    throw Error(Errc::invalid_argument, name_ + ": holds no documents");
  }
  return TokenDocuments({.name = name_,
                         .vocabulary = vocabulary_,
                         .token_bytes = sizeof(std::uint32_t),
                         .tokens = std::as_bytes(std::span(tokens_)),
                         .documents = std::as_bytes(std::span(documents_)),
                         .labels = std::as_bytes(std::span(labels_))});
}

}  // namespace roundpipe
