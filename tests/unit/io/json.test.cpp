// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/json.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace json_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// The message that refuses \p text, without the name of the file.
std::string refusal(std::string_view text, JsonLimits const& limits = {}) {
  auto const error = error_of([&] { (void)parse_json(bytes_of(text), "the.json", limits); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(error.message().starts_with("'the.json': "));
  return error.message();
}

}  // namespace

TEST_CASE("JSON of files is parsed") {
  auto const json =
      parse_json(bytes_of(R"( {"a": [1, 2.5, null, true], "b": {"a": "\u00e9"}} )"), "x");
  CHECK(json.at("a").size() == 4);
  CHECK(json.at("a")[0] == 1);
  CHECK(json.at("b").at("a") == "\xc3\xa9");
  TemporaryFolder const folder;
  CHECK(read_json(put_file(folder.path / "file", "[3]")) == nlohmann::json{3});
}

TEST_CASE("equal keys of different objects are no duplicates") {
  auto const json = parse_json(bytes_of(R"([{"a": {"a": 1}, "b": {"a": 2}}, {"a": 3}])"), "x");
  CHECK(json[0].at("b").at("a") == 2);
}

TEST_CASE("a key that stands twice in an object is refused") {
  CHECK(contains(refusal(R"({"a": 1, "b": 2, "a": 3})"), "key 'a' stands twice"));
  CHECK(contains(refusal(R"([{"x": {"b": 1, "b": 1}}])"), "key 'b' stands twice"));
  CHECK(contains(refusal(R"({"a": {"c": 1}, "a": 2})"), "key 'a' stands twice"));
}

TEST_CASE("what is no JSON is refused, with the place") {
  CHECK(contains(refusal(R"({"a": )"), "line 1, column"));
  CHECK(contains(refusal(""), "is no JSON"));
  CHECK(contains(refusal("{}{}"), "is no JSON"));
  CHECK(contains(refusal("{'a': 1}"), "is no JSON"));
  CHECK(contains(refusal("[1,]"), "is no JSON"));
  CHECK(contains(refusal("// comment\n[]"), "is no JSON"));
  CHECK(contains(refusal("[NaN]"), "is no JSON"));
  CHECK(contains(refusal("[1e999]"), "is no JSON"));
  CHECK(contains(refusal("\"\xff\""), "is no JSON"));
  CHECK(contains(refusal("\"\n\""), "is no JSON"));
}

TEST_CASE("a NUL does not end a text, and a byte-order mark does not begin one") {
  CHECK(contains(refusal(std::string_view("{}\0{", 4)), "byte 2 is 0"));
  CHECK(contains(refusal("\xEF\xBB\xBF{}"), "byte-order mark"));
}

TEST_CASE("texts that are too deep or too long are refused") {
  std::string const deep = std::string(33, '[') + std::string(33, ']');
  CHECK(contains(refusal(deep), "nests deeper than 32 levels"));
  CHECK(contains(refusal(std::string(1'000'000, '[')), "nests deeper"));
  CHECK_NOTHROW((void)parse_json(bytes_of(deep.substr(1, 64)), "x"));
  CHECK(contains(refusal(R"({"a": {"b": 1}})", {.depth = 1}), "nests deeper than 1 levels"));
  CHECK(contains(refusal("[1, 2]", {.bytes = 5}), "has 6 bytes, more than 5"));
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "file", "[1, 2]");
  auto const error = error_of([&] { (void)read_json(path, {.bytes = 5}); });
  CHECK(error.code() == Errc::bad_file);
}

TEST_CASE("messages are one line, whatever the text holds") {
  auto const message = refusal("[\"\x01\x02\r\n\"]");
  for (char const c : message) {
    CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
  CHECK(refusal("[" + std::string(5000, 'x') + "]").size() < 500);
}

TEST_CASE("values become text, and what is no UTF-8 is refused") {
  CHECK(json_text(nlohmann::json{{"a", {1, 2}}}) == R"({"a":[1,2]})");
  CHECK(json_text(nlohmann::json{{"a", 1}}, 2) == "{\n  \"a\": 1\n}");
  CHECK(json_text(nlohmann::ordered_json{{"b", 1}, {"a", 1}}) == R"({"b":1,"a":1})");
  auto const error = error_of([] { (void)json_text(nlohmann::json("\xff")); });
  CHECK(error.code() == Errc::invalid_argument);
}

}  // namespace json_test
