// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/data/token_rows.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE TokenRows::TokenRows(TokenDocuments documents, RowLayout const& layout)
    : documents_(std::move(documents)), layout_(layout) {
  require(layout.context >= 1, Errc::invalid_argument, "a row has a context of at least 1 token");
  auto const tokens = documents_.size();
  rows_ = layout.packing == RowPacking::packed
              ? tokens / layout.context + (tokens % layout.context != 0 ? 1 : 0)
              : documents_.documents();
}

ROUNDPIPE_INLINE TokenRange TokenRows::tokens(std::uint64_t row) const noexcept {
  assert(row < rows_);
  auto const all = layout_.packing == RowPacking::packed
                       ? TokenRange{row * layout_.context, documents_.size()}
                       : documents_.document(row);
  return {all.first, all.first + std::min(all.size(), layout_.context)};
}

ROUNDPIPE_INLINE std::uint64_t TokenRows::cut_off_tokens() const noexcept {
  std::uint64_t count = 0;
  if (layout_.packing == RowPacking::document_per_row) {
    for (std::uint64_t row = 0; row < rows_; ++row) {
      count += documents_.document(row).size() - tokens(row).size();
    }
  }
  return count;
}

ROUNDPIPE_INLINE void TokenRows::copy(std::uint64_t row,
                                      RowEnd end,
                                      HostSpan<std::int32_t> tokens,
                                      HostSpan<std::int32_t> labels) const {
  auto const range = this->tokens(row);
  auto const count = static_cast<std::size_t>(range.size());
  assert(tokens.size() >= count && labels.size() == tokens.size());
  documents_.copy_tokens(range.first, tokens.first(count));
  std::fill(
      tokens.begin() + static_cast<std::ptrdiff_t>(count), tokens.end(), layout_.padding_token);

  // Position i predicts token range.first + i + 1, if there is such a token.
  auto const predicting = static_cast<std::size_t>(
      std::min<std::uint64_t>(range.end, documents_.size() - 1) - range.first);
  documents_.copy_labels(range.first + 1, labels.first(predicting));
  std::fill(labels.begin() + static_cast<std::ptrdiff_t>(predicting), labels.end(), ignored_label);
  // The document behind the last one that ends in the row would end behind the row.
  for (auto document = documents_.document_of(range.first);
       document < documents_.documents() && documents_.document(document).end <= range.end;
       ++document) {
    labels[static_cast<std::size_t>(documents_.document(document).end - 1 - range.first)] =
        ignored_label;
  }
  if (end == RowEnd::ignored) {
    labels[count - 1] = ignored_label;
  }
}

}  // namespace roundpipe
