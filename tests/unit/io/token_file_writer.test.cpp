// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/token_file_writer.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/io/token_file.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace token_file_writer_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::string bytes_of(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void check_equal(std::vector<MadeDocument> const& found, std::vector<MadeDocument> const& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    CHECK(found[d].tokens == wanted[d].tokens);
    CHECK(found[d].labels == (wanted[d].labels.empty() ? wanted[d].tokens : wanted[d].labels));
  }
}

}  // namespace

TEST_CASE("documents survive writing and reading, in both widths, with and without a mask") {
  TemporaryFolder const folder;
  auto const path = folder.path / "data.tokens";
  for (std::uint64_t const vocabulary :
       {std::uint64_t{1000}, std::uint64_t{65536}, std::uint64_t{65537}, token_limit}) {
    for (bool const masked : {false, true}) {
      for (std::vector<std::size_t> const& sizes :
           {std::vector<std::size_t>{1}, {8}, {3, 1, 4}, {64, 64}, {100, 200, 33, 1}}) {
        auto const documents = made_documents(sizes, 0, masked);
        write_token_file(path, documents, vocabulary);
        TokenFile const file(path);
        check_equal(documents_of(file.view()), documents);
        CHECK(file.view().vocabulary() == vocabulary);
        CHECK(file.view().name() == path.string());
        file.view().require_below(vocabulary, "the model's");
        auto const width = vocabulary <= 65536 ? 2U : 4U;
        CHECK(std::filesystem::file_size(path) >= 128 + width * file.view().size());
      }
    }
  }
  std::vector<std::filesystem::path> const left(std::filesystem::directory_iterator(folder.path),
                                                {});
  CHECK(left == std::vector{path});
}

TEST_CASE("the format of the file has not changed") {
  TemporaryFolder const folder;
  auto const path = folder.path / "data.tokens";
  TokenFileWriter writer(path, 300);
  writer.add(Tokens{1, 299});
  writer.append(Tokens{5, 6}, Tokens{-100, 6});
  writer.append(Tokens{7});
  writer.end_document();
  CHECK(writer.tokens() == 5);
  CHECK(writer.documents() == 2);
  CHECK_FALSE(std::filesystem::exists(path));
  writer.finish();
  using namespace std::string_literals;
  auto const zeros = [](std::size_t count) { return std::string(count, '\0'); };
  auto const number = [&](unsigned value, std::size_t bytes) {
    std::string text(bytes, '\0');
    text[0] = static_cast<char>(value & 0xFF);
    text[1] = static_cast<char>(value >> 8);
    return text;
  };
  auto const expected =
      "RPTOKENS" + number(1, 4) + number(128, 4) + number(2, 4) + zeros(4) + number(300, 8) +
      number(5, 8) + number(2, 8) + number(257, 8) + number(128, 8) + number(10, 8) +  // tokens
      number(192, 8) + number(24, 8) +                                                 // documents
      number(256, 8) + number(1, 8) +                                                  // loss mask
      zeros(24) +                                                                      //
      number(1, 2) + number(299, 2) + number(5, 2) + number(6, 2) + number(7, 2) + zeros(54) +
      number(0, 8) + number(2, 8) + number(5, 8) + zeros(40) + "\x1B"s;  // of tokens 0, 1, 3, 4
  CHECK(bytes_of(path) == expected);
}

TEST_CASE("more than fits the buffer is written in order, also with a mask that begins late") {
  TemporaryFolder const folder;
  auto const path = folder.path / "data.tokens";
  auto documents = made_documents({300'000, 7, 400'000}, 0, false);
  documents.push_back({{1, 2, 3}, {-100, 2, -100}});
  documents.push_back({{4, 5}, {}});
  write_token_file(path, documents, 1'000'000);
  check_equal(documents_of(TokenFile(path).view()), documents);
}

TEST_CASE("what a file cannot hold is refused, and nothing is appended") {
  TemporaryFolder const folder;
  auto const path = folder.path / "data.tokens";
  for (std::uint64_t const vocabulary : {std::uint64_t{0}, token_limit + 1}) {
    CHECK(error_of([&] { TokenFileWriter(path, vocabulary); }).code() == Errc::invalid_argument);
  }
  CHECK(std::filesystem::is_empty(folder.path));
  TokenFileWriter writer(path, 100);
  auto const refusal = [&](auto const& call) {
    auto const error = error_of(call);
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(contains(error.message(), path.string()));
    return error.message();
  };
  CHECK(contains(refusal([&] { writer.end_document(); }), "no open document"));
  CHECK(contains(refusal([&] { writer.finish(); }), "no document"));
  writer.add(Tokens{1, 2});
  CHECK(contains(refusal([&] { writer.add(Tokens{3, 100}); }), "token 3 is 100: want 0 to 99"));
  CHECK(contains(refusal([&] { writer.add(Tokens{-1}); }), "token 2 is -1"));
  CHECK(contains(refusal([&] { writer.add(Tokens{3}, Tokens{4}); }),
                 "label 2 is 4: want -100, or the token, 3"));
  CHECK(contains(refusal([&] { writer.add(Tokens{3, 4}, Tokens{3}); }), "a label for each"));
  CHECK(contains(refusal([&] { writer.add(Tokens{}); }), "no open document"));
  writer.append(Tokens{9});
  CHECK(contains(refusal([&] { writer.finish(); }), "has not ended"));
  writer.end_document();
  writer.finish();
  CHECK(contains(refusal([&] { writer.add(Tokens{3}); }), "is finished"));
  CHECK(contains(refusal([&] { writer.finish(); }), "is finished"));
  check_equal(documents_of(TokenFile(path).view()), {{{1, 2}, {}}, {{9}, {}}});
}

TEST_CASE("without the end there is no file, and an old one stays until the new one is whole") {
  TemporaryFolder const folder;
  auto const path = folder.path / "data.tokens";
  {
    TokenFileWriter writer(path, 100);
    writer.add(Tokens{1, 2});
  }
  CHECK(std::filesystem::is_empty(folder.path));
  write_token_file(path, {{{1, 2}, {}}}, 100);
  {
    TokenFileWriter writer(path, 100);
    writer.add(Tokens{3});
    check_equal(documents_of(TokenFile(path).view()), {{{1, 2}, {}}});
    writer.finish();
  }
  check_equal(documents_of(TokenFile(path).view()), {{{3}, {}}});
  CHECK(error_of([&] { TokenFileWriter(folder.path / "none" / "file", 100); }).code() ==
        std::errc::no_such_file_or_directory);
}

}  // namespace token_file_writer_test
