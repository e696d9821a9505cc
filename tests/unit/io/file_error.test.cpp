// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/file_error.hpp>

#include <support/contains.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

namespace file_error_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("texts in quotes are one line, and short") {
  CHECK(in_quotes("model.safetensors") == "'model.safetensors'");
  CHECK(in_quotes("") == "''");
  CHECK(in_quotes("a\nb\t\x7f") ==
        "'a?b?"
        "?'");
  CHECK(in_quotes(std::string("a\0b", 3)) == "'a?b'");
  CHECK(in_quotes("\xc3\xa9") == "'\xc3\xa9'");
  CHECK(in_quotes(std::string(120, 'x')) == "'" + std::string(120, 'x') + "'");
  CHECK(in_quotes(std::string(121, 'x')) == "'" + std::string(120, 'x') + "...'");
}

TEST_CASE("a cut parts no character") {
  auto const cut = [](std::size_t before) {
    std::string text(before, 'x');
    for (int i = 0; i < 60; ++i) {
      text += "\xe2\x82\xac";  // a euro sign: three bytes
    }
    return in_quotes(text);
  };
  // 120 bytes hold 40 signs; with an 'x' before, 39 signs and two bytes of another.
  CHECK(cut(0).size() == 2 + 120 + 3);
  CHECK(cut(1).size() == 2 + 118 + 3);
  CHECK(cut(2).size() == 2 + 119 + 3);
}

TEST_CASE("names of files are one line, and whole") {
  std::string const name(300, 'x');
  CHECK(path_in_quotes(name + "\n") == "'" + name + "?'");
  CHECK(contains(bad_file(name + ".safetensors", "a", "b").message(), ".safetensors': a b"));
  CHECK(contains(file_error("open", name + ".json", ENOENT).message(), ".json'"));
}

TEST_CASE("errors of the system carry its code, what was tried, and the file") {
  auto const error = file_error("open", "some/file", ENOENT);
  CHECK(error.code() == std::errc::no_such_file_or_directory);
  CHECK(error.message() == "cannot open 'some/file'");
  CHECK(contains(error.what(), "No such file"));
}

TEST_CASE("errors of content name file, field and fault") {
  auto const error = bad_file("some/file", "shape of tensor 'w'", "has the extent -1");
  CHECK(error.code() == Errc::bad_file);
  CHECK(error.message() == "'some/file': shape of tensor 'w' has the extent -1");
}

}  // namespace file_error_test
