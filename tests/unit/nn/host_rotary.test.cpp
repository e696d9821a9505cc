// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_rotary.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace host_rotary_test {

using roundpipe::nn::detail::RotaryTable;

/// Checks all angles of a table against theta^(-i / half) times the position.
void check_table(double theta, std::int64_t head_dim, std::int64_t length) {
  CAPTURE(theta);
  CAPTURE(head_dim);
  auto const& table = RotaryTable<double>::get(theta, head_dim, length);
  auto const half = head_dim / 2;
  for (std::int64_t position = 0; position < length; ++position) {
    REQUIRE(table.cosine(position).size() == half);
    for (std::int64_t i = 0; i < half; ++i) {
      auto const turns = static_cast<double>(2 * i) / static_cast<double>(head_dim);
      auto const angle = static_cast<double>(position) / std::pow(theta, turns);
      CHECK(table.cosine(position)[i] == doctest::Approx(std::cos(angle)));
      CHECK(table.sine(position)[i] == doctest::Approx(std::sin(angle)));
    }
  }
}

TEST_CASE("a table of rotations follows its formula, and grows") {
  check_table(10000, 8, 3);
  check_table(10000, 8, 5);
}

TEST_CASE("a table is made anew when theta or the width of the heads changes") {
  check_table(10000, 8, 4);
  check_table(100, 8, 4);
  check_table(100, 4, 4);
  check_table(100, 8, 2);
}

}  // namespace host_rotary_test
