// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/core/median.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <vector>

namespace median_test {

using roundpipe::detail::median;

TEST_CASE("a median is the value in the middle, or the mean of the two that are") {
  auto const of = [](std::vector<double> values) { return median(values); };
  CHECK(of({}) == std::nullopt);
  CHECK(of({3}) == 3);
  CHECK(of({9, 1}) == 5);
  CHECK(of({7, 1, 100}) == 7);
  CHECK(of({100, 2, 1, 4}) == 3);
  CHECK(of({5, 5, 1, 9, 2}) == 5);
}

}  // namespace median_test
