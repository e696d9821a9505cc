// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Tokenized documents in memory.

#include <roundpipe/config.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// Owns documents: 4 bytes a token, and 4 more once a label differs from its token.
class TokenArrays {
 public:
  /// \param name For errors: of the file from which the documents come.
  explicit TokenArrays(std::string name) : name_(std::move(name)) {}

  /// Appends a document. \p labels stand as \ref TokenDocuments says; with none, the tokens are the
  /// labels. Copies both.
  /// \throws Error (invalid_argument), and changes nothing, for a document without tokens, another
  ///         number of labels than of tokens, a negative token, or a label that is neither a token
  ///         nor \ref ignored_label. The message names the field as JSON lines do (input_ids,
  ///         labels), and the element.
  void add(HostSpan<std::int32_t const> tokens, HostSpan<std::int32_t const> labels = {});

  /// The number of documents.
  [[nodiscard]] std::size_t size() const noexcept { return documents_.size() - 1; }

  /// The documents. The view lives as long as this object (or the one that it is moved to), and
  /// until the next `add`.
  /// \throws Error (invalid_argument) when there are none.
  [[nodiscard]] TokenDocuments view() const;

 private:
  std::string name_;
  std::vector<std::uint32_t> tokens_;
  bool has_labels_ = false;  // whether a label differs from its token
  std::vector<std::int32_t> labels_;
  std::vector<std::uint64_t> documents_{0};  // each one's first token, and the end of the last
  std::uint64_t vocabulary_ = 0;             // one more than the largest token or label
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/token_arrays.ipp>
#endif
