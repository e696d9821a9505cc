// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/token_documents.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace roundpipe {

namespace detail {

/// Number \p index of an array of T of any alignment.
template <class T>
[[nodiscard]] T load_number(HostSpan<std::byte const> array, std::uint64_t index) noexcept {
  assert(index < array.size() / sizeof(T));
  T number{};
  std::memcpy(&number, array.data() + index * sizeof(T), sizeof(T));
  return number;
}

/// Copies numbers \p first and later of an array of T to \p out. \returns the largest.
template <class T>
[[nodiscard]] std::uint32_t widen_tokens(HostSpan<std::byte const> array,
                                         std::uint64_t first,
                                         HostSpan<std::int32_t> out) noexcept {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t const token = load_number<T>(array, first + i);
    largest = std::max(largest, token);
    out[i] = static_cast<std::int32_t>(token);
  }
  return largest;
}

[[nodiscard]] ROUNDPIPE_INLINE Error token_error(std::string const& name,
                                                 std::string const& what,
                                                 std::uint64_t index,
                                                 std::uint32_t token,
                                                 std::uint64_t limit,
                                                 std::string_view whose) {
  return bad_file(name,
                  what + ' ' + std::to_string(index),
                  "is " + std::to_string(token) + ", and " + std::string(whose) +
                      " vocabulary has " + std::to_string(limit) + " tokens");
}

}  // namespace detail

ROUNDPIPE_INLINE TokenDocuments::TokenDocuments(TokenMemory memory) : memory_(std::move(memory)) {
  auto const& m = memory_;
  size_ = m.tokens.size() / m.token_bytes;
  documents_ = m.documents.empty() ? 1 : m.documents.size() / sizeof(std::uint64_t) - 1;
  assert(m.token_bytes == 2 || m.token_bytes == 4);
  assert(m.vocabulary <= token_limit);
  assert(size_ > 0 && documents_ > 0);
  assert(m.loss_mask.empty() || m.loss_mask.size() == (size_ + 7) / 8);
  assert(m.labels.empty() || m.labels.size() == size_ * sizeof(std::int32_t));
}

ROUNDPIPE_INLINE TokenRange TokenDocuments::document(std::uint64_t index) const noexcept {
  assert(index < documents_);
  if (memory_.documents.empty()) {
    return {0, size_};
  }
  return {detail::load_number<std::uint64_t>(memory_.documents, index),
          detail::load_number<std::uint64_t>(memory_.documents, index + 1)};
}

ROUNDPIPE_INLINE std::uint64_t TokenDocuments::document_of(std::uint64_t index) const noexcept {
  assert(index < size_);
  std::uint64_t first = 0;  // the document is one of first to end - 1
  std::uint64_t end = documents_;
  while (end - first > 1) {
    auto const middle = first + (end - first) / 2;
    (document(middle).first <= index ? first : end) = middle;
  }
  return first;
}

ROUNDPIPE_INLINE void TokenDocuments::copy_tokens(std::uint64_t first,
                                                  HostSpan<std::int32_t> out) const {
  assert(first <= size_ && out.size() <= size_ - first);
  auto const largest = memory_.token_bytes == 2
                           ? detail::widen_tokens<std::uint16_t>(memory_.tokens, first, out)
                           : detail::widen_tokens<std::uint32_t>(memory_.tokens, first, out);
  if (largest < memory_.vocabulary) [[likely]] {
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto const token = static_cast<std::uint32_t>(out[i]);
    if (token >= memory_.vocabulary) {
      throw detail::token_error(
          memory_.name, "token", first + i, token, memory_.vocabulary, "the file's");
    }
  }
}

ROUNDPIPE_INLINE void TokenDocuments::copy_labels(std::uint64_t first,
                                                  HostSpan<std::int32_t> out) const {
  if (!memory_.labels.empty()) {
    assert(first <= size_ && out.size() <= size_ - first);
    if (!out.empty()) {
      std::memcpy(out.data(),
                  memory_.labels.data() + first * sizeof(std::int32_t),
                  out.size() * sizeof(std::int32_t));
    }
    return;
  }
  copy_tokens(first, out);
  if (!memory_.loss_mask.empty()) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      auto const index = first + i;
      auto const bits = std::to_integer<unsigned>(memory_.loss_mask[index / 8]);
      if ((bits >> (index % 8) & 1U) == 0) {
        out[i] = ignored_label;
      }
    }
  }
}

ROUNDPIPE_INLINE void TokenDocuments::require_below(std::uint64_t limit,
                                                    std::string_view whose) const {
  std::array<std::int32_t, 4096> part{};
  auto const require_all = [&](std::string const& what, auto const& copy) {
    for (std::uint64_t first = 0; first < size_; first += part.size()) {
      auto const numbers = HostSpan<std::int32_t>(part).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), size_ - first)));
      copy(first, numbers);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        auto const number = static_cast<std::uint32_t>(numbers[i]);
        if (number >= limit && numbers[i] != ignored_label) {
          throw detail::token_error(memory_.name, what, first + i, number, limit, whose);
        }
      }
    }
  };
  require_all("token", [&](auto first, auto numbers) { copy_tokens(first, numbers); });
  if (!memory_.labels.empty()) {
    require_all("label", [&](auto first, auto numbers) { copy_labels(first, numbers); });
  }
}

}  // namespace roundpipe
