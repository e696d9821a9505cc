// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/token_documents.hpp>

#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace token_documents_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// The bytes of \p values behind one byte more, so that no number is aligned.
template <class T>
std::vector<std::byte> unaligned(std::vector<T> const& values) {
  std::vector<std::byte> bytes(1 + values.size() * sizeof(T));
  std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  return bytes;
}

}  // namespace

TEST_CASE("arrays of both widths are read at any alignment") {
  auto const documents = unaligned<std::uint64_t>({0, 2, 5});
  auto const narrow = unaligned<std::uint16_t>({1, 65535, 3, 4, 5});
  auto const wide = unaligned<std::uint32_t>({1, 65535, 3, 4, 5});
  std::array const mask{std::byte{0b10110}};
  for (auto const width : {2U, 4U}) {
    TokenDocuments const view({.name = "f",
                               .vocabulary = 1 << 16,
                               .token_bytes = width,
                               .tokens = std::span(width == 2 ? narrow : wide).subspan(1),
                               .documents = std::span(documents).subspan(1),
                               .loss_mask = mask});
    CHECK(view.size() == 5);
    CHECK(view.documents() == 2);
    CHECK(view.has_labels());
    CHECK(view.document(0) == TokenRange{0, 2});
    CHECK(view.document(1) == TokenRange{2, 5});
    CHECK(view.document(1).size() == 3);
    auto const read = documents_of(view);
    CHECK(read[0].tokens == Tokens{1, 65535});
    CHECK(read[0].labels == Tokens{-100, 65535});
    CHECK(read[1].tokens == Tokens{3, 4, 5});
    CHECK(read[1].labels == Tokens{3, -100, 5});
  }
}

TEST_CASE("without documents all tokens are one, and without labels they are their own") {
  std::vector<std::uint32_t> const tokens{7, 8, 9};
  TokenDocuments const view(
      {.name = "f", .vocabulary = 10, .tokens = std::as_bytes(std::span(tokens))});
  CHECK(view.documents() == 1);
  CHECK(view.document(0) == TokenRange{0, 3});
  CHECK_FALSE(view.has_labels());
  Tokens labels(2);
  view.copy_labels(1, labels);
  CHECK(labels == Tokens{8, 9});
  view.copy_tokens(3, {});
}

TEST_CASE("every token is found in its document") {
  std::vector<std::size_t> const sizes{1, 5, 2, 1, 1, 30, 3};
  auto const arrays = arrays_of(made_documents(sizes));
  auto const view = arrays.view();
  std::uint64_t token = 0;
  for (std::uint64_t d = 0; d < sizes.size(); ++d) {
    for (std::size_t i = 0; i < sizes[d]; ++i, ++token) {
      CHECK(view.document_of(token) == d);
    }
  }
}

TEST_CASE("a token outside of the vocabulary is named with its file, where it is read or checked") {
  std::vector<std::uint32_t> tokens(10'000, 5);
  tokens[9000] = 4'000'000'000;  // as a 32-bit number with a sign, it would be below all others
  tokens[9500] = 77;
  TokenDocuments const view(
      {.name = "f.tokens", .vocabulary = 77, .tokens = std::as_bytes(std::span(tokens))});
  Tokens part(3);
  view.copy_tokens(8997, part);
  for (auto const first : {8998, 9000}) {
    auto const error = error_of([&] { view.copy_tokens(static_cast<std::uint64_t>(first), part); });
    CHECK(error.code() == Errc::bad_file);
    CHECK(error.message() ==
          "'f.tokens': token 9000 is 4000000000, and the file's vocabulary has 77 tokens");
  }
  CHECK(contains(error_of([&] { view.copy_labels(9500, part); }).message(), "token 9500 is 77"));
  CHECK(contains(error_of([&] { view.require_below(100, "the model's"); }).message(),
                 "token 9000 is 4000000000"));
  tokens[9000] = 5;
  tokens[9500] = 76;
  view.require_below(77, "the model's");
  CHECK(error_of([&] { view.require_below(76, "the model's"); }).message() ==
        "'f.tokens': token 9500 is 76, and the model's vocabulary has 76 tokens");
}

TEST_CASE("labels that are no tokens of the document are checked, too") {
  auto const arrays = arrays_of({{{1, 2, 3}, {-100, 90, 3}}});
  auto const view = arrays.view();
  view.require_below(91, "the model's");
  CHECK(error_of([&] { view.require_below(90, "the model's"); }).message() ==
        "'made': label 1 is 90, and the model's vocabulary has 90 tokens");
}

}  // namespace token_documents_test
