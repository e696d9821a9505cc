// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/time_axis.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace time_axis_test {

using namespace roundpipe;

namespace {

std::vector<std::string> labels(double span_s, std::size_t most) {
  std::vector<std::string> result;
  for (auto const& tick : detail::time_ticks(span_s, most)) {
    result.push_back(tick.label);
  }
  return result;
}

}  // namespace

TEST_CASE(
    "An axis counts in round seconds, or in round milliseconds when it is shorter than a second") {
  using Labels = std::vector<std::string>;
  CHECK(labels(4.5, 5) == Labels{"0 s", "1 s", "2 s", "3 s", "4 s"});
  CHECK(labels(1, 5) == Labels{"0.0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"});
  CHECK(labels(0.3, 3) == Labels{"0 ms", "100 ms", "200 ms", "300 ms"});
  CHECK(labels(0.9, 2) == Labels{"0 ms", "500 ms"});
  CHECK(labels(7e-5, 4) == Labels{"0.00 ms", "0.02 ms", "0.04 ms", "0.06 ms"});
  CHECK(labels(3599, 4) == Labels{"0 s", "1000 s", "2000 s", "3000 s"});
}

TEST_CASE("An axis has as many ticks as allowed, at steps of 1, 2 or 5 times a power of ten") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    auto const span_s = std::pow(10.0, std::uniform_real_distribution<>(-7, 5)(random));
    std::size_t const most = 1 + random() % 20;
    auto const ticks = detail::time_ticks(span_s, most);
    CAPTURE(span_s);
    CAPTURE(most);
    REQUIRE(ticks.size() >= 1);
    CHECK(ticks.size() <= most + 1);
    std::set<std::string> distinct;
    for (auto const& tick : ticks) {
      CHECK(tick.at_s <= span_s * (1 + 1e-8));
      CHECK(distinct.insert(tick.label).second);
      double const unit_s = tick.label.ends_with(" ms") ? 1e-3 : 1;
      CHECK(std::stod(tick.label) * unit_s == doctest::Approx(tick.at_s).epsilon(1e-9));
    }
    // The oracle tries every step from the finest.
    double const unit_s = span_s >= 1 ? 1 : 1e-3;
    double expected_s = 0;
    for (int exponent = -12; expected_s == 0; ++exponent) {
      for (int const digit : {1, 2, 5}) {
        double const step_s = digit * std::pow(10.0, exponent) * unit_s;
        if (expected_s == 0 && span_s / step_s < static_cast<double>(most) + 1) {
          expected_s = step_s;
        }
      }
    }
    if (ticks.size() > 1) {
      CHECK(ticks[1].at_s == doctest::Approx(expected_s).epsilon(1e-9));
    } else {
      CHECK(expected_s > span_s);
    }
  }
}

TEST_CASE("Numbers have a fixed count of decimals") {
  CHECK(detail::fixed_number(1.0 / 3, 2) == "0.33");
  CHECK(detail::fixed_number(-2, 0) == "-2");
  CHECK(detail::fixed_number(1e20, 1) == "100000000000000000000.0");
}

}  // namespace time_axis_test
