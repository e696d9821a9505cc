// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/held_bytes.hpp>

#include <doctest/doctest.h>

namespace held_bytes_test {

using roundpipe::detail::HeldBytes;
using roundpipe::detail::Lifetime;

TEST_CASE("the peak is the first moment at which most is held") {
  HeldBytes held;
  held.hold({2, 6}, 10);
  held.hold({0, 3}, 5);
  held.hold({4, 5}, 5);  // as much as at 2
  CHECK(held.peak().bytes == 15);
  CHECK(held.peak().at_s == 2);
  CHECK(held.at(-1) == 0);
  CHECK(held.at(0) == 5);
  CHECK(held.at(3) == 10);
  CHECK(held.at(4.5) == 15);
  CHECK(held.at(6) == 0);
}

TEST_CASE("what leaves makes room for what arrives at the same moment") {
  HeldBytes held;
  held.hold({0, 1}, 7);
  held.hold({1, 2}, 8);
  CHECK(held.peak().bytes == 8);
}

TEST_CASE("what is held for no time counts for nothing") {
  HeldBytes held;
  CHECK(held.peak().bytes == 0);
  held.hold({1, 1}, 100);
  held.hold({0, 2}, 3);
  CHECK(held.peak().bytes == 3);
  CHECK(held.at(1) == 3);
}

TEST_CASE("a lifetime spans its parts, and no action is no part of it") {
  Lifetime const life{{3, 4}, {1, 2}, {}};
  CHECK(life.from_s == 1);
  CHECK(life.until_s == 4);
}

}  // namespace held_bytes_test
