// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/finite_values.hpp>

#include <roundpipe/core/half.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace finite_values_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

template <class T>
std::string refusal(std::vector<T> const& values, std::size_t begin = 0) {
  auto const error = error_of(
      [&] { require_finite(std::as_bytes(std::span(values)), dtype_of<T>, "output 'y'", begin); });
  return error.code() == Errc::not_finite ? error.message() : "";
}

template <class T>
void check_type() {
  CHECK(refusal(std::vector<T>{}).empty());
  CHECK(refusal(std::vector<T>{T(0), T(-1), std::numeric_limits<T>::max()}).empty());
  auto const infinity = std::numeric_limits<T>::infinity();
  CHECK(refusal(std::vector<T>{T(0), T(-infinity), infinity}) == "output 'y'[1] is -inf");
  auto const nan = refusal(std::vector<T>{std::numeric_limits<T>::quiet_NaN()}, 40);
  CHECK((nan == "output 'y'[40] is nan" || nan == "output 'y'[40] is -nan"));
}

}  // namespace

TEST_CASE("the first value that is not finite is named") {
  check_type<float>();
  check_type<double>();
  std::vector<BFloat16> const b{BFloat16(1), BFloat16(std::numeric_limits<float>::infinity())};
  CHECK(refusal(b, 7) == "output 'y'[8] is inf");
  std::vector<Float16> const h{Float16(65504), Float16(65536)};
  CHECK(refusal(h) == "output 'y'[1] is inf");
  CHECK(refusal(std::vector<std::int32_t>{-1, 0x7f800000}).empty());
}

TEST_CASE("a backward may overflow with a loss scale alone") {
  CHECK(finite_passes(false, false) == FinitePasses::none);
  CHECK(finite_passes(false, true) == FinitePasses::none);
  CHECK(finite_passes(true, false) == FinitePasses::all);
  CHECK(finite_passes(true, true) == FinitePasses::forward);
}

}  // namespace finite_values_test
