// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/mapped_file.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/resident_bytes.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace mapped_file_test {

using namespace roundpipe;
using namespace roundpipe::test;

static_assert(std::is_nothrow_move_constructible_v<MappedFile>);
static_assert(!std::is_copy_constructible_v<MappedFile>);

TEST_CASE("a mapped file holds the bytes of the file") {
  TemporaryFolder const folder;
  MappedFile const mapped(put_file(folder.path / "file", "hello"));
  CHECK(text_of(mapped.bytes()) == "hello");
  CHECK(mapped.file().path() == folder.path / "file");
  CHECK(reinterpret_cast<std::uintptr_t>(mapped.bytes().data()) % 4096 == 0);
}

TEST_CASE("an empty file, and no file, have no bytes") {
  TemporaryFolder const folder;
  CHECK(MappedFile(put_file(folder.path / "empty", "")).bytes().empty());
  CHECK(MappedFile().bytes().empty());
}

TEST_CASE("the bytes of a moved file stay where they are") {
  TemporaryFolder const folder;
  MappedFile first(put_file(folder.path / "file", "hello"));
  auto const bytes = first.bytes();
  MappedFile second(std::move(first));
  CHECK(first.bytes().empty());
  CHECK(second.bytes().data() == bytes.data());
  MappedFile third(put_file(folder.path / "other", "others"));
  third = std::move(second);
  CHECK(third.bytes().data() == bytes.data());
  CHECK(text_of(bytes) == "hello");
}

TEST_CASE("a mapping outlives the name of its file") {
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "file", "hello");
  MappedFile const mapped(path);
  std::filesystem::remove(path);
  CHECK(text_of(mapped.bytes()) == "hello");
}

TEST_CASE("what cannot be mapped is refused by name") {
  TemporaryFolder const folder;
  auto const error = error_of([&] { MappedFile const none(folder.path / "none"); });
  CHECK(error.code() == std::errc::no_such_file_or_directory);
  CHECK(contains(error.message(), "none'"));
  CHECK(error_of([&] { MappedFile const none(folder.path); }).code() == std::errc::is_a_directory);
}

TEST_CASE("advice changes no byte") {
  TemporaryFolder const folder;
  std::string const text(10000, 'x');
  MappedFile const mapped(put_file(folder.path / "file", text));
  mapped.expect_sequential_reads();
  mapped.expect_reads(mapped.bytes().subspan(5000, 100));
  mapped.drop(mapped.bytes().subspan(10, 20));
  mapped.drop(mapped.bytes().subspan(10));
  mapped.drop(mapped.bytes());
  CHECK(text_of(mapped.bytes()) == text);
  MappedFile const none;
  none.expect_sequential_reads();
  none.drop(none.bytes());
}

TEST_CASE("dropped pages are resident no more" * doctest::skip(has_shadow_memory)) {
  TemporaryFolder const folder;
  constexpr Bytes size = 32_MiB;
  MappedFile const mapped(put_file(folder.path / "file", std::string(size, 'x')));
  auto const before = resident_bytes();
  if (before == 0) {
    return;  // the system does not say
  }
  auto const bytes = mapped.bytes();
  auto const sum =
      std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}, [](std::size_t s, std::byte b) {
        return s + std::to_integer<std::size_t>(b);
      });
  CHECK(sum == size * 'x');
  auto const read = resident_bytes();
  CHECK(read > before + size / 2);
  mapped.drop(bytes);
  CHECK(resident_bytes() < read - size / 2);
}

}  // namespace mapped_file_test
