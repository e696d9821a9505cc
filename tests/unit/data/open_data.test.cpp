// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/open_data.hpp>

#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <system_error>

namespace open_data_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a file is opened by what it begins with, whatever its name") {
  TemporaryFolder const folder;
  auto const tokens = folder.path / "a.jsonl";
  auto const lines = folder.path / "b.tokens";
  write_token_file(tokens, {{{1, 2, 3}, {-100, 2, 3}}}, 10);
  std::ofstream(lines) << "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}\n";
  for (auto const& path : {tokens, lines}) {
    auto const source = open_data(path, 2.5);
    CHECK(source.weight == 2.5);
    auto const documents = documents_of(source.documents);
    REQUIRE(documents.size() == 1);
    CHECK(documents[0].tokens == Tokens{1, 2, 3});
    CHECK(documents[0].labels == Tokens{-100, 2, 3});
  }
  CHECK(error_of([&] { (void)open_data(folder.path / "none"); }).code() ==
        std::errc::no_such_file_or_directory);
  CHECK(error_of([&] { (void)open_data(folder.path); }).code() == std::errc::is_a_directory);
  std::ofstream(lines) << "RPTOKENS";
  CHECK(contains(error_of([&] { (void)open_data(lines); }).message(), "header"));
  std::ofstream(lines) << "plain text\n";
  CHECK(contains(error_of([&] { (void)open_data(lines); }).message(), "line 1 is no JSON"));
  std::ofstream(lines) << "";
  CHECK(error_of([&] { (void)open_data(lines); }).code() == Errc::bad_file);
}

}  // namespace open_data_test
