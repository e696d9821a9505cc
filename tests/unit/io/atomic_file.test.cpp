// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/atomic_file.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

namespace atomic_file_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::size_t files_in(std::filesystem::path const& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("a file has its name only once it is committed") {
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "file", "old");
  AtomicFile file(path);
  file.file().write_at(0, bytes_of("new content"));
  CHECK(content_of(path) == "old");
  file.commit();
  CHECK(content_of(path) == "new content");
  CHECK(file.file().descriptor() == -1);
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("a file that is not committed leaves nothing") {
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "file", "old");
  {
    AtomicFile file(path);
    file.file().write_at(0, bytes_of("new"));
    CHECK(files_in(folder.path) == 2);
    AtomicFile moved(std::move(file));
    CHECK(moved.path() == path);
    AtomicFile other(folder.path / "other");
    other = std::move(moved);
    CHECK(other.path() == path);
  }
  CHECK(content_of(path) == "old");
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("two writers, or what a crash has left, are not in each other's way") {
  TemporaryFolder const folder;
  auto const path = folder.path / "file";
  put_file(folder.path / "file.0.partial", "left by a crash");
  AtomicFile first(path);
  AtomicFile second(path);
  first.file().write_at(0, bytes_of("first"));
  second.file().write_at(0, bytes_of("second"));
  first.commit();
  CHECK(content_of(path) == "first");
  second.commit();
  CHECK(content_of(path) == "second");
  CHECK(content_of(folder.path / "file.0.partial") == "left by a crash");
}

TEST_CASE("a file in a folder that is not there is refused by name") {
  TemporaryFolder const folder;
  auto const error = error_of([&] { write_file(folder.path / "none" / "file", "x"); });
  CHECK(error.code() == std::errc::no_such_file_or_directory);
  CHECK(contains(error.message(), "none/file"));
}

TEST_CASE("a name that is a folder's is refused, and nothing is left") {
  TemporaryFolder const folder;
  std::filesystem::create_directory(folder.path / "taken");
  put_file(folder.path / "taken" / "file", "");
  auto const error = error_of([&] { write_file(folder.path / "taken", "x"); });
  CHECK(error.code() == std::errc::is_a_directory);
  CHECK(contains(error.message(), "cannot rename a file to"));
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("a folder that vanishes while a file is written is one clear error") {
  TemporaryFolder const folder;
  auto const sub = folder.path / "sub";
  std::filesystem::create_directory(sub);
  AtomicFile file(sub / "file");
  std::filesystem::remove_all(sub);
  file.file().write_at(0, bytes_of("x"));
  auto const error = error_of([&] { file.commit(); });
  CHECK(error.code() == std::errc::no_such_file_or_directory);
  CHECK(contains(error.message(), "sub/file"));
}

TEST_CASE("whole contents are written at once, also in the current folder") {
  TemporaryFolder const folder;
  auto const path = folder.path / "file";
  write_file(path, "one");
  CHECK(content_of(path) == "one");
  write_file(path, "");
  CHECK(content_of(path).empty());
  CHECK(files_in(folder.path) == 1);
  auto const here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  write_file("local", "two");
  std::filesystem::current_path(here);
  CHECK(content_of(folder.path / "local") == "two");
}

}  // namespace atomic_file_test
