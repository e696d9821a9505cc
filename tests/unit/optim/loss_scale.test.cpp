// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/optim/loss_scale.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace loss_scale_test {

using namespace roundpipe;
using roundpipe::test::error_of;

TEST_CASE("an overflow lowers the scale, and steps without overflow raise it") {
  DynamicLossScale scale({.initial = 64, .growth_interval = 2}, 0);
  CHECK(scale.value() == 64);
  scale.record(true);
  CHECK(scale.value() == 32);
  scale.record(false);
  CHECK(scale.value() == 32);
  scale.record(false);
  CHECK(scale.value() == 64);
  scale.record(false);
  scale.record(true);  // the count restarts
  scale.record(false);
  CHECK(scale.value() == 32);
  CHECK(scale.recorded() == 6);
}

TEST_CASE("the scale of an iteration follows from the earlier steps, minus the staleness") {
  DynamicLossScale const synchronous({}, 0);
  CHECK(synchronous.newest_step(1) == 0);
  CHECK(synchronous.newest_step(5) == 4);
  DynamicLossScale const late({}, 1);
  CHECK(late.newest_step(2) == 0);
  CHECK(late.newest_step(5) == 3);
}

TEST_CASE("an overflow at the smallest scale is an error every time") {
  DynamicLossScale scale({.initial = 3, .smallest = 2}, 0);
  scale.record(true);
  CHECK(scale.value() == 2);  // not below the smallest scale
  CHECK(error_of([&] { scale.record(true); }).code() == Errc::not_finite);
  CHECK(error_of([&] { scale.record(true); }).code() == Errc::not_finite);
  CHECK(scale.recorded() == 3);
  CHECK(scale.value() == 2);
}

TEST_CASE("invalid options are refused") {
  auto const code_of = [](LossScaleOptions const& options) {
    return error_of([&] { return DynamicLossScale(options, 0); }).code();
  };
  CHECK(code_of({}) == std::error_code{});
  CHECK(code_of({.initial = 0.5}) == Errc::invalid_argument);
  CHECK(code_of({.initial = std::numeric_limits<double>::infinity()}) == Errc::invalid_argument);
  CHECK(code_of({.growth = 1}) == Errc::invalid_argument);
  CHECK(code_of({.backoff = 1}) == Errc::invalid_argument);
  CHECK(code_of({.growth_interval = 0}) == Errc::invalid_argument);
}

TEST_CASE("a restored scale goes on as the one whose state it has") {
  LossScaleOptions const options{.initial = 64, .growth_interval = 3};
  DynamicLossScale scale(options, 1);
  scale.record(true);
  scale.record(false);
  scale.record(false);
  DynamicLossScale other(options, 1);
  other.restore(scale.state());
  for (bool const overflowed : {false, false, true, false}) {
    CHECK(other.value() == scale.value());
    CHECK(other.recorded() == scale.recorded());
    scale.record(overflowed);
    other.record(overflowed);
  }
  CHECK(error_of([&] { other.restore({.value = 0.5}); }).code() == Errc::invalid_argument);
}

}  // namespace loss_scale_test
