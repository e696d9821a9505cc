// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/freed_space.hpp>

#include <roundpipe/core/bytes.hpp>

#include <doctest/doctest.h>

#include <array>

namespace freed_space_test {

using roundpipe::detail::FreedSpace;

TEST_CASE("memory grows only where nothing that is free is large enough") {
  FreedSpace space(100);
  CHECK(space.take(10) == 100);
  CHECK(space.end() == 110);
  space.free(20, 8);
  CHECK(space.take(9) == 110);
  CHECK(space.take(5) == 23);
  CHECK(space.take(3) == 20);  // the rest of it
  CHECK(space.take(1) == 119);
  CHECK(space.end() == 120);
}

TEST_CASE("spaces that touch become one, whichever is freed first") {
  for (auto const& [first, second, last] : {std::array{0, 10, 20}, {20, 10, 0}, {0, 20, 10}}) {
    FreedSpace space(50);
    for (auto const offset : {first, second, last}) {
      space.free(static_cast<roundpipe::Bytes>(offset), 10);
    }
    CHECK(space.take(30) == 0);
    CHECK(space.end() == 50);
  }
}

TEST_CASE("the last space that is large enough is taken, and nothing is freed by no bytes") {
  FreedSpace space(50);
  space.free(0, 0);
  space.free(5, 4);
  space.free(20, 8);
  space.free(30, 7);
  CHECK(space.take(8) == 20);
  CHECK(space.take(4) == 33);
  CHECK(space.take(4) == 5);
  CHECK(space.take(3) == 30);
  CHECK(space.take(3) == 50);
}

TEST_CASE("what is freed from the end on leaves one space") {
  FreedSpace space(50);
  space.free(40, 10);
  CHECK(space.take(5) == 45);
  space.free(30, 10);
  CHECK(space.take(5) == 40);
  space.free(20, 10);
  CHECK(space.take(20) == 20);
  CHECK(space.end() == 50);
}

}  // namespace freed_space_test
