// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/token_rows.hpp>

#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace token_rows_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

struct Row {
  Tokens tokens;
  Tokens labels;
  friend bool operator==(Row const&, Row const&) = default;
};

Row row_of(TokenRows const& rows,
           std::uint64_t row,
           std::size_t length,
           RowEnd end = RowEnd::predicts) {
  Row result{Tokens(length, 12345), Tokens(length, 12345)};
  rows.copy(row, end, result.tokens, result.labels);
  return result;
}

}  // namespace

TEST_CASE("packed rows go on across documents, whose last tokens predict nothing") {
  auto const arrays = arrays_of({{{1, 2, 3}, {}}, {{4}, {}}, {{5, 6, 7, 8, 9, 10}, {}}});
  TokenRows const rows(arrays.view(), {.context = 4, .padding_token = 99});
  REQUIRE(rows.size() == 3);
  CHECK(row_of(rows, 0, 4) == Row{{1, 2, 3, 4}, {2, 3, -100, -100}});
  CHECK(row_of(rows, 1, 4) == Row{{5, 6, 7, 8}, {6, 7, 8, 9}});  // 9 is the next row's
  CHECK(row_of(rows, 1, 4, RowEnd::ignored) == Row{{5, 6, 7, 8}, {6, 7, 8, -100}});
  CHECK(row_of(rows, 2, 4) == Row{{9, 10, 99, 99}, {10, -100, -100, -100}});
  CHECK(row_of(rows, 2, 2) == Row{{9, 10}, {10, -100}});
  CHECK(rows.tokens(1) == TokenRange{4, 8});
  CHECK(rows.tokens(2) == TokenRange{8, 10});
  CHECK(rows.cut_off_tokens() == 0);
}

TEST_CASE("a document that ends at a cut does not predict the next row") {
  auto const arrays = arrays_of({{{1, 2}, {}}, {{3, 4}, {}}});
  TokenRows const rows(arrays.view(), {.context = 2});
  REQUIRE(rows.size() == 2);
  CHECK(row_of(rows, 0, 2) == Row{{1, 2}, {2, -100}});
  CHECK(row_of(rows, 1, 2) == Row{{3, 4}, {4, -100}});
}

TEST_CASE("a document in a row of its own is padded or cut, and its labels move up by one") {
  auto const arrays = arrays_of({{{1, 2, 3}, {-100, -100, 3}},
                                 {{4}, {4}},
                                 {{5, 6, 7, 8, 9, 10}, {-100, 6, -100, 80, 9, 10}}});
  TokenRows const rows(
      arrays.view(), {.context = 4, .packing = RowPacking::document_per_row, .padding_token = 99});
  REQUIRE(rows.size() == 3);
  CHECK(row_of(rows, 0, 4) == Row{{1, 2, 3, 99}, {-100, 3, -100, -100}});
  CHECK(row_of(rows, 0, 3) == Row{{1, 2, 3}, {-100, 3, -100}});
  CHECK(row_of(rows, 1, 4) == Row{{4, 99, 99, 99}, {-100, -100, -100, -100}});
  CHECK(row_of(rows, 2, 4) == Row{{5, 6, 7, 8}, {6, -100, 80, 9}});
  CHECK(rows.cut_off_tokens() == 2);
}

TEST_CASE("every context predicts each token but the first of each document once") {
  std::vector<std::size_t> const sizes{3, 1, 1, 17, 2, 5, 1, 8};
  auto const documents = made_documents(sizes, 1000);
  auto const arrays = arrays_of(documents);
  for (std::uint64_t context = 1; context <= 40; ++context) {
    for (auto const packing : {RowPacking::packed, RowPacking::document_per_row}) {
      TokenRows const rows(arrays.view(), {.context = context, .packing = packing});
      std::vector<std::pair<int, int>> predictions;
      Tokens tokens;
      for (std::uint64_t r = 0; r < rows.size(); ++r) {
        auto const row = row_of(rows, r, static_cast<std::size_t>(context));
        for (std::size_t i = 0; i < row.tokens.size(); ++i) {
          if (i < rows.tokens(r).size()) {
            tokens.push_back(row.tokens[i]);
          }
          if (row.labels[i] != ignored_label) {
            predictions.emplace_back(row.tokens[i], row.labels[i]);
          }
        }
      }
      Tokens wanted_tokens;
      std::vector<std::pair<int, int>> wanted;
      for (auto const& document : documents) {
        auto const size = packing == RowPacking::packed
                              ? document.tokens.size()
                              : std::min<std::size_t>(document.tokens.size(), context);
        for (std::size_t i = 0; i < size; ++i) {
          wanted_tokens.push_back(document.tokens[i]);
          if (i + 1 < document.tokens.size()) {
            wanted.emplace_back(document.tokens[i], document.tokens[i + 1]);
          }
        }
      }
      CHECK(tokens == wanted_tokens);
      CHECK(predictions == wanted);
    }
  }
}

TEST_CASE("a context of 0 is refused") {
  auto const arrays = arrays_of({{{1}, {}}});
  CHECK(error_of([&] { TokenRows(arrays.view(), {}); }).code() == Errc::invalid_argument);
}

}  // namespace token_rows_test
