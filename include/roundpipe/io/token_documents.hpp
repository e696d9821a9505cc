// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A view of tokenized documents, and of which of their tokens a model learns to predict.

#include <roundpipe/config.hpp>
#include <roundpipe/core/span.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace roundpipe {

/// The label of a position without loss: `ignore_index` of PyTorch and transformers, and what
/// TransformerConfig::padding_label is by default.
inline constexpr std::int32_t ignored_label = -100;

/// Token ids, and labels, are below this number, so that both fit std::int32_t.
inline constexpr std::uint64_t token_limit = std::uint64_t{1} << 31;

/// Tokens first to end - 1.
struct TokenRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return end - first; }
  friend constexpr bool operator==(TokenRange const&, TokenRange const&) noexcept = default;
};

/// The arrays of tokenized documents, all little-endian and of any alignment.
struct TokenMemory {
  std::string name;                       ///< Of the file, for errors.
  std::uint64_t vocabulary = 0;           ///< Every token and label is below; at most token_limit.
  std::size_t token_bytes = 4;            ///< Of each token: 2 or 4.
  HostSpan<std::byte const> tokens{};     ///< Of all documents, one after another.
  HostSpan<std::byte const> documents{};  ///< 64-bit: each document's first token, and the end of
                                          ///< the last one. Empty: all tokens are one document.
  HostSpan<std::byte const> loss_mask{};  ///< A bit for each token, from bit 0 of byte 0 on:
                                          ///< whether it is a label. Empty: `labels` say.
  HostSpan<std::byte const> labels{};     ///< 32-bit, one for each token. Empty: the tokens are.
};

/// Documents of tokens with labels, in memory that lives elsewhere and outlives the view.
///
/// Labels stand as in transformers: the label with the number of a token is what the position
/// *before* that token should predict, the token itself or \ref ignored_label. The first label of a
/// document is no position's. \ref TokenRows does the shift. Copies are cheap, and several threads
/// may read at once.
class TokenDocuments {
 public:
  /// Precondition: the arrays of \p memory fit each other; there is at least one token, documents
  /// are not empty, and labels are \ref ignored_label or below the vocabulary.
  explicit TokenDocuments(TokenMemory memory);

  [[nodiscard]] std::string const& name() const noexcept { return memory_.name; }
  [[nodiscard]] std::uint64_t vocabulary() const noexcept { return memory_.vocabulary; }
  /// The number of tokens.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The number of documents.
  [[nodiscard]] std::uint64_t documents() const noexcept { return documents_; }
  /// The tokens of document \p index. Precondition: there is such a document.
  [[nodiscard]] TokenRange document(std::uint64_t index) const noexcept;
  /// The document that token \p index belongs to. Precondition: there is such a token.
  [[nodiscard]] std::uint64_t document_of(std::uint64_t index) const noexcept;
  /// Whether some labels may differ from their tokens.
  [[nodiscard]] bool has_labels() const noexcept {
    return !memory_.loss_mask.empty() || !memory_.labels.empty();
  }

  /// Copies the tokens from \p first on, as many as \p out holds. Precondition: there are so many.
  /// \throws Error (bad_file) for a token that is not below the vocabulary; the message
  ///         names file, token and number.
  void copy_tokens(std::uint64_t first, HostSpan<std::int32_t> out) const;
  /// Copies the labels of the tokens from \p first on, likewise.
  /// \throws Error as \ref copy_tokens.
  void copy_labels(std::uint64_t first, HostSpan<std::int32_t> out) const;

  /// Reads all tokens and labels.
  /// \throws Error (bad_file) for the first that is not below \p limit, which the message
  ///         calls "\p whose vocabulary".
  void require_below(std::uint64_t limit, std::string_view whose) const;

 private:
  TokenMemory memory_;
  std::uint64_t size_ = 0;
  std::uint64_t documents_ = 1;
};

static_assert(std::endian::native == std::endian::little,
              "arrays of tokens are little-endian, and are read as they are");

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/token_documents.ipp>
#endif
