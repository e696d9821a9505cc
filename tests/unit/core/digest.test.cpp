// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/digest.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace digest_test {

namespace {

std::uint64_t digest_of(std::string_view text) {
  roundpipe::Digest digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.value();
}

}  // namespace

TEST_CASE("the digest is FNV-1a with 64 bits") {  // vectors of RFC 9923, appendix C
  CHECK(digest_of("") == 0xcbf29ce484222325U);
  CHECK(digest_of("a") == 0xaf63dc4c8601ec8cU);
  CHECK(digest_of("foobar") == 0x85944171f73967e8U);
}

}  // namespace digest_test
