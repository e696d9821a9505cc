// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_rotary.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace host_rotary_test {

using roundpipe::RotaryOptions;
using roundpipe::nn::detail::RotaryTable;

/// Checks all angles of a table against theta^(-i / half) times the position.
void check_table(double theta, std::int64_t head_dim, std::int64_t length) {
  CAPTURE(theta);
  CAPTURE(head_dim);
  auto const& table = RotaryTable<double>::get({.theta = theta}, head_dim, length);
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

TEST_CASE("a table's frequencies keep a share that depends on pair and frequency, 0 to 1") {
  // The frequencies of four pairs: 1, 1/10, 1/100 and 1/1000.
  RotaryOptions options{.theta = 10000};
  options.blend = {.factor = 4, .kept = 0.5, .kept_by_pair = -0.125, .kept_by_frequency = 0.5};
  // Shares of 1, 0.425, 0.255 and 0.1255.
  double const frequencies[] = {
      1, (0.425 + 0.575 / 4) / 10, (0.255 + 0.745 / 4) / 100, (0.1255 + 0.8745 / 4) / 1000};
  auto const check = [&](double amplitude) {
    auto const& table = RotaryTable<double>::get(options, 8, 100);
    for (int position = 0; position < 100; ++position) {
      for (int i = 0; i < 4; ++i) {
        CHECK(table.cosine(position)[i] ==
              doctest::Approx(amplitude * std::cos(position * frequencies[i])));
        CHECK(table.sine(position)[i] ==
              doctest::Approx(amplitude * std::sin(position * frequencies[i])));
      }
    }
  };
  check(1);
  options.blend.amplitude = 1.5;  // a table of its own
  check(1.5);
  options.blend = {.factor = 4, .kept = 3, .kept_by_pair = -9};
  auto const& table = RotaryTable<double>::get(options, 8, 2);
  CHECK(table.sine(1)[0] == doctest::Approx(std::sin(1)));
  CHECK(table.sine(1)[1] == doctest::Approx(std::sin(0.1 / 4)));
}

TEST_CASE("by default a blend changes no bit of a frequency") {
  for (int i = 0; i < 64; ++i) {
    CHECK(roundpipe::nn::detail::rotary_frequency({.theta = 5e5}, i, 64) ==
          std::pow(5e5, -static_cast<double>(i) / 64.0));
  }
}

}  // namespace host_rotary_test
