// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts documents into the rows of batches, and shifts labels to the positions that predict.

#include <roundpipe/config.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <cstdint>

namespace roundpipe {

/// How documents become rows.
enum class RowPacking : std::uint8_t {
  /// All documents of a file stand one after another, and are cut into rows of \c context tokens
  /// wherever a cut falls: no padding but in the last row. Nothing separates the documents of a
  /// row: its positions count from 0 to the end, and attention reaches back into earlier documents,
  /// so each document should end with a token that says so (`tokenize_data.py` writes one).
  packed,
  /// A row for each document, from its first token on, padded. What is longer than the context is
  /// cut off.
  document_per_row,
};

struct RowLayout {
  std::uint64_t context = 0;  ///< Positions of a row, at least 1.
  RowPacking packing = RowPacking::packed;
  std::int32_t padding_token = 0;  ///< Of positions without a token; their label is ignored_label.
};

/// What the last token of a row predicts when the same document goes on in the next row.
enum class RowEnd : std::uint8_t {
  predicts,  ///< The first token of the next row.
  ignored,   ///< Nothing: one of the two rows is held out.
};

/// The rows of one file.
///
/// Files have their labels beside their tokens, as transformers does; a layer wants for each
/// position what that position predicts (see LanguageModelHead). So the label of a position here is
/// the label of the token behind it. Every token but the first of each document is predicted once,
/// also across the cut between two rows. The last token of a document predicts nothing.
class TokenRows {
 public:
  /// \throws Error (invalid_argument) for a context of 0.
  TokenRows(TokenDocuments documents, RowLayout const& layout);

  [[nodiscard]] TokenDocuments const& documents() const noexcept { return documents_; }
  /// The number of rows.
  [[nodiscard]] std::uint64_t size() const noexcept { return rows_; }
  /// The tokens of row \p row, without padding.
  [[nodiscard]] TokenRange tokens(std::uint64_t row) const noexcept;
  /// Tokens that no row has: the ends of documents that are longer than a row. Reads all documents.
  [[nodiscard]] std::uint64_t cut_off_tokens() const noexcept;

  /// Fills \p tokens and \p labels, both of the same length, with row \p row and padding.
  /// Precondition: they are as long as the row's tokens, at least.
  /// \throws Error as \ref TokenDocuments::copy_tokens.
  void copy(std::uint64_t row,
            RowEnd end,
            HostSpan<std::int32_t> tokens,
            HostSpan<std::int32_t> labels) const;

 private:
  TokenDocuments documents_;
  RowLayout layout_;
  std::uint64_t rows_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/data/impl/token_rows.ipp>
#endif
