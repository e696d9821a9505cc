// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/rank_division.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace rank_division_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

HostRoom named(Bytes budget) {
  return {.budget = budget, .least = 1000, .most = 11000};
}
HostRoom unnamed(Bytes budget) {
  return {.budget = budget, .least = 1000, .most = 11000, .is_named = false};
}

}  // namespace

TEST_CASE("shares follow the room that named budgets leave") {
  CHECK(shares_of(std::vector{named(9000), named(3000)}) == std::vector{0.8, 0.2});
  CHECK(shares_of(std::vector{named(41000), named(1000)}) == std::vector{4.0, 0.0});
  CHECK(shares_of(std::vector{unnamed(41000), named(11000)}) == std::vector{4.0, 1.0});
}

TEST_CASE("without named budgets shares are equal, unless a rank has no room for that") {
  CHECK(shares_of(std::vector{unnamed(6000), unnamed(90000)}) == std::vector{1.0, 1.0});
  CHECK(shares_of(std::vector{unnamed(5000), unnamed(21000)}) == std::vector{0.4, 2.0});
}

TEST_CASE("a refusal names the rank with the least room and a budget with which all have enough") {
  auto const error = error_of([] { (void)shares_of(std::vector{named(9000), named(2000)}); });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().find("rank 1: the host budget of 1.95 KiB is too small") == 0);
  CHECK(error.message().find("(3100 bytes)") != std::string::npos);
  CHECK(shares_of(std::vector{named(9000), named(3100)}).size() == 2);
}

TEST_CASE("a rank that has no room though others keep all is named, with what it takes") {
  auto const error = error_of([] { (void)shares_of(std::vector{named(900000), named(999)}); });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().find("rank 1: ") == 0);
  CHECK(error.message().find("(1000 bytes)") != std::string::npos);
}

TEST_CASE("shares and speeds of ranks are one for each, and positive") {
  for (std::vector<double> const& wrong : std::vector<std::vector<double>>{{1, 2}, {0}, {-1}}) {
    for (bool const speeds : {false, true}) {
      PipelineOptions options;
      (speeds ? options.rank_speeds : options.rank_shares) = wrong;
      CHECK(error_of([&] { agree_on_division({}, options, CostModel({}), {}, false); }).code() ==
            Errc::invalid_argument);
    }
  }
}

}  // namespace rank_division_test
