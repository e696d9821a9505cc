// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/bytes.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <string>

namespace bytes_test {

namespace {

using namespace roundpipe::literals;
using roundpipe::align_up;
using roundpipe::Bytes;
using roundpipe::format_bytes;
using roundpipe::parse_bytes;

static_assert(1_KiB == 1024);
static_assert(3_MiB == 3 * 1024_KiB);
static_assert(2_GiB == 2048_MiB);

static_assert(align_up(0) == 0);
static_assert(align_up(1) == 256);
static_assert(align_up(256) == 256);
static_assert(align_up(257) == 512);
static_assert(align_up(10, 4) == 12);
static_assert(align_up(7, 7) == 7);  // any alignment, not only powers of two

}  // namespace

TEST_CASE("sizes are parsed with and without units") {
  CHECK(parse_bytes("0") == 0);
  CHECK(parse_bytes("4096") == 4096);
  CHECK(parse_bytes("17B") == 17);
  CHECK(parse_bytes("64KiB") == 64_KiB);
  CHECK(parse_bytes("64 KiB") == 64_KiB);
  CHECK(parse_bytes("64   KB") == 64_KiB);
  CHECK(parse_bytes("64K") == 64_KiB);
  CHECK(parse_bytes("512MiB") == 512_MiB);
  CHECK(parse_bytes("512M") == 512_MiB);
  CHECK(parse_bytes("1.5 GiB") == 1536_MiB);
  CHECK(parse_bytes("2T") == 2048_GiB);
  CHECK(parse_bytes("1e3") == 1000);
  CHECK(parse_bytes("0.5K") == 512);
  CHECK(parse_bytes("1.9") == 1);  // fractions of a byte are dropped
}

TEST_CASE("an invalid size is refused, and the error quotes it") {
  for (std::string const text : {"",
                                 " ",
                                 "x",
                                 "GiB",
                                 "-1",
                                 "-0.5GiB",
                                 "1.5.5",
                                 "12 12",
                                 "1kib",
                                 "1KiBB",
                                 "1Ki",
                                 "1PiB",
                                 "1 GiB ",
                                 "0x10",
                                 "nan",
                                 "inf",
                                 "1e30",
                                 "9000000TiB"}) {
    CAPTURE(text);
    auto const error = roundpipe::test::error_of([&] { (void)parse_bytes(text); });
    CHECK(error.code() == roundpipe::Errc::invalid_argument);
    CHECK(error.message().find("'" + text + "'") != std::string::npos);
  }
}

TEST_CASE("a size is parsed from the middle of a longer text") {
  std::string_view const text = "12345";
  CHECK(parse_bytes(text.substr(1, 2)) == 23);
}

TEST_CASE("sizes are printed with the largest unit that is not below one") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1_KiB) == "1.00 KiB");
  CHECK(format_bytes(1536_KiB) == "1.50 MiB");
  CHECK(format_bytes(139_GiB) == "139.00 GiB");
  CHECK(format_bytes(5000 * 1024_GiB) == "5000.00 TiB");
}

TEST_CASE("a printed size is parsed back") {
  for (Bytes bytes = 1; bytes < 4096_GiB; bytes = bytes * 3 + 7) {
    auto const read = static_cast<double>(parse_bytes(format_bytes(bytes)));
    CHECK(read == doctest::Approx(static_cast<double>(bytes)).epsilon(0.006));
  }
}

}  // namespace bytes_test
