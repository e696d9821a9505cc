// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/json_lines.hpp>

#include <roundpipe/core/error.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace json_lines_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::vector<MadeDocument> parse(std::string const& text) {
  auto const arrays = parse_json_lines(std::as_bytes(std::span(text)), "f.jsonl");
  return documents_of(arrays.view());
}

/// What the parser says of \p line, which stands behind two lines that are good.
std::string refusal(std::string const& line) {
  auto const text = "{\"input_ids\": [1]}\n\n" + line + "\n{\"input_ids\": [1]}\n";
  auto const error = error_of([&] { (void)parse(text); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "'f.jsonl': line 3"));
  return error.message();
}

}  // namespace

TEST_CASE("lines become documents, with labels where there are some") {
  auto const documents = parse(
      "{\"input_ids\": [1, 2, 3]}\n"
      "  \t\r\n"
      "{\"labels\": [-100, 7], \"input_ids\": [6, 2147483647]}\r\n"
      "{ \"input_ids\" : [ 0 ] , \"labels\" : [ 0 ] , \"attention_mask\" : [ 1 ] }");
  REQUIRE(documents.size() == 3);
  CHECK(documents[0].tokens == Tokens{1, 2, 3});
  CHECK(documents[0].labels == Tokens{1, 2, 3});
  CHECK(documents[1].tokens == Tokens{6, 2147483647});
  CHECK(documents[1].labels == Tokens{-100, 7});
  CHECK(documents[2].tokens == Tokens{0});
}

TEST_CASE("other fields are skipped, whatever they hold") {
  auto const documents = parse(
      "{\"text\": \"a\\u00e9\", \"n\": null, \"b\": true, \"f\": 1.5, \"i\": -3, \"u\": 3, "
      "\"o\": {\"input_ids\": [9], \"deep\": [[{}], {\"labels\": []}]}, \"a\": [1, [2, {}]], "
      "\"input_ids\": [4, 5], \"e\": [], \"eo\": {}, \"labels\": [4, 5]}");
  REQUIRE(documents.size() == 1);
  CHECK(documents[0].tokens == Tokens{4, 5});
  auto const deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(parse("{\"deep\": " + deep + ", \"input_ids\": [4]}").size() == 1);
}

TEST_CASE("a line that is no document is refused by file, line and field") {
  CHECK(contains(refusal("{}"), "line 3: input_ids is missing"));
  CHECK(contains(refusal("{\"labels\": [1]}"), "line 3: input_ids is missing"));
  CHECK(contains(refusal("{\"input_ids\": []}"), "line 3: input_ids has no element"));
  CHECK(contains(refusal("{\"input_ids\": 5}"), "line 3: input_ids is 5, not an array"));
  CHECK(contains(refusal("{\"input_ids\": null}"), "input_ids is null, not an array"));
  CHECK(contains(refusal("{\"input_ids\": \"1 2\"}"), "input_ids is '1 2', not an array"));
  CHECK(contains(refusal("{\"input_ids\": {\"0\": 1}}"), "input_ids is an object, not an array"));
  CHECK(contains(refusal("{\"input_ids\": [1, -1]}"), "input_ids element 1 is -1, not a token"));
  CHECK(contains(refusal("{\"input_ids\": [1, -100]}"), "input_ids element 1 is -100"));
  CHECK(contains(refusal("{\"input_ids\": [2147483648]}"), "input_ids element 0 is 2147483648"));
  CHECK(
      contains(refusal("{\"input_ids\": [99999999999999999999]}"), "input_ids element 0 is 9999"));
  CHECK(contains(refusal("{\"input_ids\": [1.0]}"), "input_ids element 0 is 1.0, not a token"));
  CHECK(contains(refusal("{\"input_ids\": [1e2]}"), "input_ids element 0 is 1e2"));
  CHECK(contains(refusal("{\"input_ids\": [1, true]}"), "input_ids element 1 is true"));
  CHECK(contains(refusal("{\"input_ids\": [\"1\"]}"), "input_ids element 0 is '1'"));
  CHECK(contains(refusal("{\"input_ids\": [[1]]}"), "input_ids element 0 is an array"));
  CHECK(contains(refusal("{\"input_ids\": [{}]}"), "input_ids element 0 is an object"));
  CHECK(contains(refusal("{\"input_ids\": [1], \"labels\": [-1]}"), "labels element 0 is -1"));
  CHECK(contains(refusal("{\"input_ids\": [1], \"labels\": [-100.0]}"),
                 "labels element 0 is -100.0, not a token from 0 to 2^31 - 1, or -100"));
  CHECK(contains(refusal("{\"input_ids\": [1, 2], \"labels\": [1]}"),
                 "line 3: labels has 1 elements, and input_ids 2"));
  CHECK(contains(refusal("{\"labels\": [], \"input_ids\": [1, 2]}"), "labels has 0 elements"));
  CHECK(contains(refusal("{\"labels\": null, \"input_ids\": [1]}"), "labels is null"));
  CHECK(contains(refusal("{\"input_ids\": [1, 2], \"attention_mask\": [1, 0]}"),
                 "attention_mask element 1 is 0, not 1"));
  CHECK(contains(refusal("{\"input_ids\": [1, 2], \"attention_mask\": [1]}"),
                 "attention_mask has 1 elements"));
  CHECK(contains(refusal("{\"input_ids\": [1], \"input_ids\": [2]}"), "input_ids stands twice"));
  CHECK(contains(refusal("[1, 2]"), "line 3 is an array, not an object"));
  CHECK(contains(refusal("7"), "line 3 is 7, not an object"));
  CHECK(contains(refusal("null"), "line 3 is null, not an object"));
}

TEST_CASE("a line that is no JSON is refused by file, line and column") {
  CHECK(contains(refusal("{\"input_ids\": [1, 2"), "line 3 is no JSON: at column 20"));
  CHECK(contains(refusal("{\"input_ids\": [1,]}"), "line 3 is no JSON"));
  CHECK(contains(refusal("{\"input_ids\": [01]}"), "line 3 is no JSON"));
  CHECK(contains(refusal("{\"input_ids\": [1e999]}"), "line 3 is no JSON"));
  CHECK(contains(refusal("{'input_ids': [1]}"), "line 3 is no JSON: at column 2"));
  CHECK(contains(refusal("{\"input_ids\": [1]} {\"input_ids\": [1]}"), "line 3 is no JSON"));
  CHECK(contains(refusal("{\"input_ids\": [1]}]"), "line 3 is no JSON"));
  CHECK(contains(refusal("{\"t\": \"\xFF\", \"input_ids\": [1]}"), "line 3 is no JSON"));
  CHECK(contains(refusal(std::string("{\"input_ids\": [1]}\0{}", 20)), "byte 18 is 0"));
  CHECK(contains(refusal("\xEF\xBB\xBF{\"input_ids\": [1]}"), "byte-order mark"));
  CHECK(contains(refusal(std::string(100'000, '[')), "line 3 is an array"));
  CHECK(contains(refusal(std::string(100'000, '{')), "line 3"));
  CHECK_FALSE(contains(refusal("{\"input_ids\": [1, 2"), "line 1"));
}

TEST_CASE("a file without a document is refused, and a missing one is the system's error") {
  for (std::string const text : {"", "\n", " \n\t\r\n"}) {
    auto const error = error_of([&] { (void)parse(text); });
    CHECK(error.code() == Errc::bad_file);
    CHECK(contains(error.message(), "'f.jsonl': the file has no line with a document"));
  }
  TemporaryFolder const folder;
  auto const path = folder.path / "f.jsonl";
  CHECK(error_of([&] { (void)read_json_lines(path); }).code() ==
        std::errc::no_such_file_or_directory);
  std::ofstream(path) << "{\"input_ids\": [3, 1]}\n{\"input_ids\": [2, x]}\n";
  auto const error = error_of([&] { (void)read_json_lines(path); });
  CHECK(contains(error.message(), path.string()));
  CHECK(contains(error.message(), "line 2"));
  std::ofstream(path) << "{\"input_ids\": [3, 1]}\n{\"input_ids\": [2]}\n";
  auto const arrays = read_json_lines(path);
  CHECK(arrays.size() == 2);
  CHECK(arrays.view().name() == path.string());
}

}  // namespace json_lines_test
