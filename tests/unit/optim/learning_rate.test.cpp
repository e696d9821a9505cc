// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/optim/learning_rate.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace learning_rate_test {

using roundpipe::Errc;
using roundpipe::Error;
using roundpipe::LearningRate;
using roundpipe::test::error_of;

TEST_CASE("a constant rate is the same in every step") {
  auto const rate = LearningRate::constant(0.3);
  CHECK(rate(1) == 0.3);
  CHECK(rate(2) == 0.3);
  CHECK(rate(std::numeric_limits<std::uint64_t>::max()) == 0.3);
}

TEST_CASE("a warm-up grows in equal steps to the peak") {
  auto const rate = LearningRate::warmup_cosine(0.8, 4, 12, 0.1);
  CHECK(rate(1) == doctest::Approx(0.2));
  CHECK(rate(2) == doctest::Approx(0.4));
  CHECK(rate(3) == doctest::Approx(0.6));
  CHECK(rate(4) == 0.8);
}

TEST_CASE("after the warm-up the rate follows half a cosine to the final rate, and stays there") {
  auto const rate = LearningRate::warmup_cosine(0.8, 4, 12, 0.1);
  CHECK(rate(6) == doctest::Approx(0.1 + 0.7 * (0.5 + std::sqrt(0.125))));
  CHECK(rate(8) == doctest::Approx(0.45));
  CHECK(rate(10) == doctest::Approx(0.1 + 0.7 * (0.5 - std::sqrt(0.125))));
  CHECK(rate(12) == 0.1);
  CHECK(rate(13) == 0.1);
  CHECK(rate(1'000'000) == 0.1);
  for (std::uint64_t step = 4; step < 12; ++step) {
    CHECK(rate(step) > rate(step + 1));
  }
}

TEST_CASE("the rate reaches the peak and the final rate exactly, for any values") {
  for (std::uint64_t warmup = 0; warmup < 50; ++warmup) {
    for (auto const peak : {0.1, 3e-4, 0.7, 1.0 / 3}) {
      auto const rate = LearningRate::warmup_cosine(peak, warmup, 50, peak / 10);
      CHECK((warmup == 0 || rate(warmup) == peak));
      CHECK(rate(warmup + 1) <= peak);
      CHECK(rate(50) == peak / 10);
    }
  }
}

TEST_CASE("without a warm-up the cosine begins at once") {
  auto const rate = LearningRate::warmup_cosine(1, 0, 2);
  CHECK(rate(1) == doctest::Approx(0.5));
  CHECK(rate(2) == 0);
}

TEST_CASE("a warm-up of all steps ends at the peak, then falls to the final rate") {
  auto const rate = LearningRate::warmup_cosine(1, 3, 3, 0.25);
  CHECK(rate(3) == 1);
  CHECK(rate(4) == 0.25);
}

TEST_CASE("a single step uses the final rate") {
  CHECK(LearningRate::warmup_cosine(1, 0, 1, 0.5)(1) == 0.5);
  CHECK(LearningRate::warmup_cosine(1, 1, 1, 0.5)(1) == 1);
}

TEST_CASE("any function of the step is a rate; what it answers is checked") {
  LearningRate const inverse = [](std::uint64_t step) { return 1 / static_cast<double>(step); };
  CHECK(inverse(4) == 0.25);
  double (*const of_step)(std::uint64_t) = [](std::uint64_t step) { return step < 3 ? 1.0 : -1.0; };
  LearningRate const falling = of_step;
  CHECK(falling(2) == 1);
  auto const error = error_of([&] { (void)falling(3); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() ==
        "the learning rate of step 3 is -1.000000; it must be finite and not negative");
  LearningRate const endless = [](std::uint64_t) { return HUGE_VAL; };
  CHECK_THROWS_AS((void)endless(1), Error);
}

TEST_CASE("invalid rates are refused") {
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  auto const infinity = std::numeric_limits<double>::infinity();
  CHECK_NOTHROW((void)LearningRate::constant(0));
  for (auto const bad : {-1e-9, nan, infinity}) {
    CHECK_THROWS_AS((void)LearningRate::constant(bad), Error);
    CHECK_THROWS_AS((void)LearningRate::warmup_cosine(bad, 1, 2), Error);
    CHECK_THROWS_AS((void)LearningRate::warmup_cosine(1, 1, 2, bad), Error);
  }
  CHECK_THROWS_AS((void)LearningRate::warmup_cosine(1, 0, 0), Error);
  CHECK_THROWS_AS((void)LearningRate::warmup_cosine(1, 3, 2), Error);
  CHECK_THROWS_AS((void)LearningRate::constant(1)(0), Error);
}

}  // namespace learning_rate_test
