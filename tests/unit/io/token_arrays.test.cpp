// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/token_arrays.hpp>

#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace token_arrays_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("documents come back as they were added, with labels from the first that differ on") {
  TokenArrays arrays("some file");
  arrays.add(Tokens{5, 6, 7});
  arrays.add(Tokens{8}, Tokens{8});
  CHECK_FALSE(arrays.view().has_labels());
  arrays.add(Tokens{1, 2}, Tokens{-100, 30});
  arrays.add(Tokens{4});
  CHECK(arrays.size() == 4);
  auto const moved = std::move(arrays);
  auto const view = moved.view();
  CHECK(view.has_labels());
  CHECK(view.name() == "some file");
  CHECK(view.vocabulary() == 31);
  CHECK(view.size() == 7);
  auto const documents = documents_of(view);
  REQUIRE(documents.size() == 4);
  CHECK(documents[0].tokens == Tokens{5, 6, 7});
  CHECK(documents[0].labels == Tokens{5, 6, 7});
  CHECK(documents[1].labels == Tokens{8});
  CHECK(documents[2].tokens == Tokens{1, 2});
  CHECK(documents[2].labels == Tokens{-100, 30});
  CHECK(documents[3].labels == Tokens{4});
}

TEST_CASE("the first document may be the one whose labels differ") {
  TokenArrays arrays("f");
  arrays.add(Tokens{1, 2}, Tokens{-100, 2});
  CHECK(documents_of(arrays.view()).at(0).labels == Tokens{-100, 2});
}

TEST_CASE("tokens up to the limit fit") {
  TokenArrays arrays("f");
  auto const largest = std::numeric_limits<std::int32_t>::max();
  arrays.add(Tokens{largest});
  CHECK(arrays.view().vocabulary() == token_limit);
  CHECK(documents_of(arrays.view()).at(0).tokens == Tokens{largest});
}

TEST_CASE("a document that is none is refused by file, field and element, and changes nothing") {
  TokenArrays arrays("f.jsonl");
  auto const refusal = [&](Tokens const& tokens, Tokens const& labels) {
    auto const error = error_of([&] { arrays.add(tokens, labels); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(contains(error.message(), "'f.jsonl'"));
    return error.message();
  };
  CHECK(contains(refusal({}, {}), "input_ids holds no token"));
  CHECK(contains(refusal({1, 2}, {1}), "labels has 1 elements, input_ids 2"));
  CHECK(contains(refusal({1, -1}, {}), "input_ids element 1 is -1"));
  CHECK(contains(refusal({1, -100}, {}), "input_ids element 1 is -100"));
  CHECK(contains(refusal({1, 2, 3}, {1, 2, -99}), "labels element 2 is -99"));
  CHECK(arrays.size() == 0);
  CHECK(contains(error_of([&] { (void)arrays.view(); }).message(), "no documents"));
  arrays.add(Tokens{3});
  CHECK(arrays.view().vocabulary() == 4);
}

}  // namespace token_arrays_test
