// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/direct_file.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace direct_file_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr auto page = DirectFile::page_bytes;

/// Some pages of memory that begin with a page.
class Pages {
 public:
  explicit Pages(Bytes size) : memory_(size + page) {
    void* at = memory_.data();
    auto space = memory_.size();
    bytes = {static_cast<std::byte*>(std::align(page, size, at, space)), size};
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<std::byte>(1 + i % 251);
    }
  }
  HostBytes bytes;

 private:
  std::vector<std::byte> memory_;
};

}  // namespace

TEST_CASE("bytes come to their place and back, whatever pages they share") {
  TemporaryFolder const folder;
  Pages const pages(5 * page);
  for (bool const can_open : {true, false}) {  // without its name the file goes through the cache
    auto const file = File::create(folder.path / (can_open ? "file" : "none"));
    if (!can_open) {
      std::filesystem::remove(file.path());
    }
    DirectFile const direct(file);
    CHECK(&direct.file() == &file);
    for (Bytes const offset : {Bytes{0}, page, Bytes{100}, 2 * page - 1}) {
      for (Bytes const size : {Bytes{0}, Bytes{7}, page, 2 * page, 3 * page + 1, Bytes{5000}}) {
        for (Bytes const shift : {Bytes{0}, Bytes{64}}) {
          CAPTURE(can_open);
          CAPTURE(offset);
          CAPTURE(size);
          CAPTURE(shift);
          std::vector<std::byte> expected(6 * page);
          file.write_at(0, expected);
          auto const from = pages.bytes.subspan((offset + shift) % page, size);
          direct.write_at(offset, from);
          std::ranges::copy(from, expected.begin() + static_cast<std::ptrdiff_t>(offset));
          std::vector<std::byte> all(expected.size());
          file.read_at(0, all);
          CHECK(all == expected);
          Pages const back(4 * page);
          auto const to = back.bytes.subspan(shift, size);
          direct.read_at(offset, to);
          CHECK(text_of(to) == text_of(from));
        }
      }
    }
  }
}

TEST_CASE("reading ends where the file ends, and errors name the file") {
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "file", std::string(page + 5, 'x'));
  auto const file = File::open(path);
  DirectFile const direct(file);
  Pages const pages(2 * page);
  direct.read_at(0, pages.bytes.first(page + 5));
  CHECK(text_of(pages.bytes.first(page + 5)) == content_of(path));
  auto const beyond = error_of([&] { direct.read_at(0, pages.bytes); });
  CHECK(beyond.code() == std::errc::io_error);
  CHECK(contains(beyond.message(), path.string()));
  auto const written = error_of([&] { direct.write_at(0, pages.bytes); });
  CHECK(written.code() == std::errc::bad_file_descriptor);
  CHECK(contains(written.message(), path.string()));
}

}  // namespace direct_file_test
