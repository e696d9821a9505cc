// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/file.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace file_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("bytes are written and read at offsets") {
  TemporaryFolder const folder;
  auto const path = folder.path / "file";
  auto file = File::create(path);
  CHECK(file.path() == path);
  CHECK(file.size() == 0);
  file.reserve(10);
  CHECK(file.size() == 10);
  file.write_at(4, bytes_of("abc"));
  std::array<std::byte, 4> read{};
  file.read_at(3, read);
  CHECK(text_of(read) == std::string("\0abc", 4));
  file.read_at(10, {});  // nothing, at the end
  file.sync();
  file.close();
  CHECK(content_of(path) == std::string("\0\0\0\0abc\0\0\0", 10));
}

TEST_CASE("threads write and read one file at once") {
  TemporaryFolder const folder;
  auto const file = File::create(folder.path / "file");
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&file, i] {
      std::string const text(100, static_cast<char>('a' + i));
      file.write_at(100 * i, bytes_of(text));
      std::vector<std::byte> read(100);
      file.read_at(100 * i, read);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  CHECK(content_of(file.path()) == std::string(100, 'a') + std::string(100, 'b') +
                                       std::string(100, 'c') + std::string(100, 'd'));
}

TEST_CASE("reading beyond the end throws, and says which file") {
  TemporaryFolder const folder;
  auto const file = File::open(put_file(folder.path / "short", "abc"));
  std::array<std::byte, 2> read{};
  auto const error = error_of([&] { file.read_at(2, read); });
  CHECK(error.code() == std::errc::io_error);
  CHECK(contains(error.message(), "beyond the end of"));
  CHECK(contains(error.message(), "short'"));
}

TEST_CASE("only a regular file that is there can be opened") {
  TemporaryFolder const folder;
  auto const missing = error_of([&] { (void)File::open(folder.path / "none"); });
  CHECK(missing.code() == std::errc::no_such_file_or_directory);
  CHECK(contains(missing.message(), "none'"));
  CHECK(error_of([&] { (void)File::open(folder.path); }).code() == std::errc::is_a_directory);
  auto const pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { (void)File::open(pipe); }).code() == std::errc::invalid_argument);
}

TEST_CASE("a file is created once, and in a folder that is there") {
  TemporaryFolder const folder;
  (void)File::create(folder.path / "file");
  CHECK(error_of([&] { (void)File::create(folder.path / "file"); }).code() ==
        std::errc::file_exists);
  CHECK(error_of([&] { (void)File::create(folder.path / "none" / "file"); }).code() ==
        std::errc::no_such_file_or_directory);
}

TEST_CASE("writing to a file opened for reading throws, and says which file") {
  TemporaryFolder const folder;
  auto const file = File::open(put_file(folder.path / "file", "abc"));
  auto const error = error_of([&] { file.write_at(0, bytes_of("x")); });
  CHECK(error.code() == std::errc::bad_file_descriptor);
  CHECK(contains(error.message(), "cannot write"));
  CHECK(contains(error.message(), "file'"));
}

TEST_CASE("a disk without room shows when the room is reserved") {
  TemporaryFolder const folder;
  auto const file = File::create(folder.path / "file");
  auto const error = error_of([&] { file.reserve(Bytes{1} << 62U); });  // more than any disk
  CHECK(
      (error.code() == std::errc::no_space_on_device || error.code() == std::errc::file_too_large));
  CHECK(contains(error.message(), "file'"));
}

TEST_CASE("a moved file has one owner") {
  TemporaryFolder const folder;
  auto first = File::open(put_file(folder.path / "file", "abc"));
  int const descriptor = first.descriptor();
  File second(std::move(first));
  CHECK(first.descriptor() == -1);
  CHECK(second.descriptor() == descriptor);
  {
    File third;
    CHECK(third.descriptor() == -1);
    third = std::move(second);
    CHECK(third.descriptor() == descriptor);
    CHECK(third.size() == 3);
  }
  CHECK(::fcntl(descriptor, F_GETFD) == -1);  // closed with its last owner
  first.close();                              // none is open: nothing happens
}

TEST_CASE("small files are read whole, large ones refused") {
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "file", "abc");
  CHECK(text_of(read_file(path, 3)) == "abc");
  auto const error = error_of([&] { (void)read_file(path, 2); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "file': the file has 3 bytes, and at most 2 are read"));
  CHECK(read_file(put_file(folder.path / "empty", ""), 0).empty());
}

TEST_CASE("folders are synced, and what is none is refused") {
  TemporaryFolder const folder;
  sync_folder(folder.path);
  sync_folder("");  // the current one
  CHECK(error_of([&] { sync_folder(folder.path / "none"); }).code() ==
        std::errc::no_such_file_or_directory);
  CHECK(error_of([&] { sync_folder(put_file(folder.path / "file", "")); }).code() ==
        std::errc::not_a_directory);
}

}  // namespace file_test
