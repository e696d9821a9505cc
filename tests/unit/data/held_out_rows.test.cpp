// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/held_out_rows.hpp>

#include <roundpipe/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace held_out_rows_test {

using namespace roundpipe;

TEST_CASE("every row is either held out or trained on, each in the order of rows") {
  for (std::uint64_t rows = 1; rows <= 60; ++rows) {
    for (std::uint64_t const every : {0, 2, 3, 7, 20, 59, 60, 61, 1000}) {
      HeldOutRows const split(rows, every, {.seed = rows + every});
      auto const group = std::min(every, rows);
      CHECK(split.held_out() == (group < 2 ? 0 : rows / group));
      CHECK(split.held_out() + split.training() == rows);
      std::vector<int> seen(static_cast<std::size_t>(rows));
      auto const check = [&](std::uint64_t count, bool held, auto const& row_of) {
        std::uint64_t before = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
          auto const row = row_of(i);
          REQUIRE(row < rows);
          CHECK((i == 0 || row > before));
          CHECK(split.is_held_out(row) == held);
          ++seen[static_cast<std::size_t>(row)];
          before = row;
        }
      };
      check(split.held_out(), true, [&](auto i) { return split.held_out_row(i); });
      check(split.training(), false, [&](auto i) { return split.training_row(i); });
      CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(rows));
    }
  }
}

TEST_CASE("each group of n rows holds out one, at a place that the key draws") {
  constexpr std::uint64_t every = 10;
  HeldOutRows const split(10'000, every, {.seed = 1});
  HeldOutRows const other(10'000, every, {.seed = 2});
  std::vector<std::size_t> places(every);
  std::size_t same = 0;
  for (std::uint64_t group = 0; group < split.held_out(); ++group) {
    auto const row = split.held_out_row(group);
    CHECK(row / every == group);
    ++places[row % every];
    same += other.held_out_row(group) == row ? 1 : 0;
  }
  for (auto const count : places) {
    CHECK(count > 50);
    CHECK(count < 150);
  }
  CHECK(same > 50);
  CHECK(same < 150);
}

TEST_CASE("with every second row held out, one of each two is trained on") {
  HeldOutRows const split(7, 2, {.seed = 3});
  CHECK(split.held_out() == 3);
  CHECK(split.training() == 4);
  CHECK_FALSE(split.is_held_out(6));
}

}  // namespace held_out_rows_test
