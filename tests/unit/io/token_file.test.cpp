// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/token_file.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/io/token_file_writer.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_documents.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace token_file_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A file of 5 tokens of 2 bytes in 2 documents, with a mask: sections at 128, 192 and 256; 257
/// bytes.
std::string good_file() {
  TemporaryFolder const folder;
  auto const path = folder.path / "data.tokens";
  write_token_file(path, {{{1, 299}, {}}, {{5, 6, 7}, {-100, 6, 7}}}, 300);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool begins_well(std::string const& bytes) {
  return is_token_file(std::as_bytes(std::span(bytes)));
}

TokenDocuments parse(std::string const& bytes) {
  return parse_token_file(std::as_bytes(std::span(bytes)), "f.tokens");
}

/// What the parser says of \p bytes.
std::string refusal(std::string const& bytes) {
  auto const error = error_of([&] { (void)parse(bytes); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "'f.tokens': "));
  return error.message();
}

template <class T>
std::string with(std::string bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}
std::string with32(std::size_t offset, std::uint32_t value) {
  return with(good_file(), offset, value);
}
std::string with64(std::size_t offset, std::uint64_t value) {
  return with(good_file(), offset, value);
}

}  // namespace

TEST_CASE("a file is mapped, and its view outlives a move") {
  TemporaryFolder const folder;
  auto const path = folder.path / "data.tokens";
  std::ofstream(path, std::ios::binary) << good_file();
  TokenFile file(path);
  auto const view = file.view();
  auto const moved = std::move(file);
  for (auto const& documents : {view, moved.view()}) {
    auto const read = documents_of(documents);
    REQUIRE(read.size() == 2);
    CHECK(read[0].tokens == Tokens{1, 299});
    CHECK(read[0].labels == Tokens{1, 299});
    CHECK(read[1].tokens == Tokens{5, 6, 7});
    CHECK(read[1].labels == Tokens{-100, 6, 7});
  }
  CHECK(begins_well(good_file()));
  CHECK_FALSE(begins_well("RPTOKEN"));
  CHECK(error_of([&] { TokenFile(folder.path / "none"); }).code() ==
        std::errc::no_such_file_or_directory);
}

TEST_CASE("every field of the header is checked, and named when it is wrong") {
  auto const good = good_file();
  REQUIRE(good.size() == 257);
  CHECK(contains(refusal(""), "magic is not 'RPTOKENS'"));
  CHECK(contains(refusal(std::string(1000, '\0')), "magic"));
  CHECK(contains(refusal(with(good, 7, 's')), "magic"));
  CHECK(contains(refusal(good.substr(0, 127)), "header is cut off: the file has 127 bytes"));
  CHECK(contains(refusal(with32(8, 2)), "version is 2, not 1"));
  CHECK(contains(refusal(with32(12, 64)), "header_bytes is 64, not 128"));
  for (auto const bytes : {0U, 1U, 3U, 8U, 0xFFFFFFFFU}) {
    CHECK(contains(refusal(with32(16, bytes)), "token_bytes is " + std::to_string(bytes)));
  }
  CHECK(contains(refusal(with32(20, 1)), "reserved is 1, not 0"));
  CHECK(contains(refusal(with64(24, 0)), "vocabulary is 0, not 1 to 65536"));
  CHECK(contains(refusal(with64(24, 65537)), "vocabulary is 65537"));
  CHECK(contains(refusal(with(with32(16, 4), 24, token_limit + 1)),
                 "vocabulary is 2147483649, not 1 to 2147483648"));
  CHECK(contains(refusal(with64(32, 0)), "tokens is 0"));
  CHECK(contains(refusal(with64(40, 0)), "documents is 0"));
  for (std::size_t byte = 104; byte < 128; ++byte) {
    CHECK(contains(refusal(with(good, byte, '\1')), "reserved_end is not zero"));
  }
}

TEST_CASE("sizes that no file has are refused before anything is computed from them") {
  for (auto const huge : {std::uint64_t{129},
                          std::uint64_t{1} << 32,
                          std::uint64_t{1} << 62,
                          std::uint64_t{1} << 63,
                          ~std::uint64_t{0}}) {
    auto const text = std::to_string(huge);
    CHECK(
        contains(refusal(with64(32, huge)), "tokens is " + text + ", and the file has 257 bytes"));
    CHECK(contains(refusal(with64(40, huge)), "documents is " + text));
    CHECK(contains(refusal(with64(56, huge)), "tokens_offset is " + text + ", not 128"));
    CHECK(contains(refusal(with64(64, huge)), "tokens_size is " + text + ", not 10"));
    CHECK(contains(refusal(with64(72, huge)), "documents_offset is " + text + ", not 192"));
    CHECK(contains(refusal(with64(80, huge)), "documents_size is " + text + ", not 24"));
    CHECK(contains(refusal(with64(88, huge)), "loss_mask_offset is " + text + ", not 256"));
    CHECK(contains(refusal(with64(96, huge)), "loss_mask_size is " + text + ", not 1"));
  }
  CHECK(contains(refusal(with64(40, 32)), "documents_size is 24, not 264"));
  CHECK(contains(refusal(with(with64(40, 32), 80, std::uint64_t{264})),
                 "documents_size is 264, more than the file has behind byte 192"));
  CHECK(contains(refusal(with(with64(32, 128), 64, std::uint64_t{256})),
                 "tokens_size is 256, more than the file has behind byte 128"));
}

TEST_CASE("a file that is cut off anywhere, or goes on, is refused") {
  auto const good = good_file();
  for (std::size_t size = 0; size < good.size(); ++size) {
    auto const message = refusal(good.substr(0, size));
    CHECK(contains(message, size < 8 ? "magic" : size < 128 ? "header" : "file_bytes is 257"));
  }
  CHECK(contains(refusal(good + '\0'), "file_bytes is 257, not 258"));
  CHECK(contains(refusal(with(good + '\0', 48, std::uint64_t{258})),
                 "file has 258 bytes, and its sections end at byte 257"));
  for (auto const byte : {138U, 191U, 216U, 255U}) {
    CHECK(contains(refusal(with(good, byte, '\1')), "the padding before "));
  }
}

TEST_CASE("a mask needs both of its fields, and no bits behind the last token") {
  CHECK(contains(refusal(with64(88, 0)), "loss_mask_offset is 0, not 256"));
  CHECK(contains(refusal(with64(96, 0)), "loss_mask_size is 0, not 1"));
  CHECK(contains(refusal(with(with64(88, 0), 96, std::uint64_t{0})),
                 "file has 257 bytes, and its sections end at byte 216"));
  for (auto const bit : {5U, 6U, 7U}) {
    CHECK(contains(refusal(with(good_file(), 256, static_cast<char>(1U << bit))),
                   "loss_mask has a bit behind the last token"));
  }
  CHECK(parse(with(good_file(), 256, '\0')).has_labels());
}

TEST_CASE("documents begin at 0, grow, and end with the tokens") {
  CHECK(contains(refusal(with64(192, 1)), "documents element 0 is 1, not 0"));
  CHECK(contains(refusal(with64(200, 0)), "documents element 1 is 0, not above 0"));
  CHECK(contains(refusal(with64(200, 5)), "documents element 1 is 5, not below 5"));
  CHECK(contains(refusal(with64(200, ~std::uint64_t{0})),
                 "documents element 1 is 18446744073709551615, not below 5"));
  CHECK(contains(refusal(with64(208, 4)), "documents element 2 is 4, not 5"));
  CHECK(contains(refusal(with64(208, 6)), "documents element 2 is 6, not 5"));
  CHECK(contains(refusal(with(with64(200, 3), 208, std::uint64_t{3})),
                 "element 2 is 3, not above 3"));
}

TEST_CASE("a token that is not below the vocabulary is found where it is read") {
  auto const view_bytes = with(good_file(), 130, std::uint16_t{300});
  auto const view = parse(view_bytes);
  CHECK(error_of([&] { (void)documents_of(view); }).message() ==
        "'f.tokens': token 1 is 300, and the file's vocabulary has 300 tokens");
  CHECK(error_of([&] { view.require_below(token_limit, "the model's"); }).code() == Errc::bad_file);
}

TEST_CASE("any single byte that changes gives a file or an error, and never another exception") {
  auto const good = good_file();
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    for (auto const value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      auto const bytes = with(good, byte, static_cast<char>(value));
      try {
        (void)documents_of(parse(bytes));
      } catch (Error const& error) {
        CHECK(error.code() == Errc::bad_file);
      }
    }
  }
}

}  // namespace token_file_test
