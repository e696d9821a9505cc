// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/costs_by_rows.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

namespace costs_by_rows_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("costs between two sizes are on the line through both") {
  CostsByRows costs;
  CHECK(costs.empty());
  LayerCost one{1, 2};
  one.replay_s = {0.5, 0.25};
  one.round_s = 7;
  LayerCost four{7, 11};
  four.replay_s = {3.5, 1};
  four.round_s = 7;
  CostModel first({one, one});
  first.set_network({3, 4});
  costs.add(1, first);
  costs.add(4, CostModel({four, four}));
  CHECK(costs.has(1));
  CHECK_FALSE(costs.has(2));

  auto const two = costs.find(2);
  REQUIRE(two);
  CHECK(two->network() == NetworkCost{3, 4});
  REQUIRE(two->layers().size() == 2);
  CHECK(two->layers()[1].forward_s == doctest::Approx(3));
  CHECK(two->layers()[1].backward_s == doctest::Approx(5));
  CHECK(two->layers()[1].replay_s[0] == doctest::Approx(1.5));
  CHECK(two->layers()[1].replay_s[1] == doctest::Approx(0.5));
  CHECK(two->layers()[1].round_s == 7);
  CHECK(costs.find(4)->layers()[0].forward_s == 7);
  CHECK_FALSE(costs.find(5));
}

TEST_CASE("of several sizes the two next to one count") {
  CostsByRows costs;
  costs.add(2, CostModel({{10, 1}}));
  costs.add(4, CostModel({{20, 1}}));
  costs.add(8, CostModel({{100, 1}}));
  costs.add(8, CostModel({{1000, 1}}));  // there are some
  CHECK(costs.find(3)->layers()[0].forward_s == doctest::Approx(15));
  CHECK(costs.find(6)->layers()[0].forward_s == doctest::Approx(60));
  CHECK_FALSE(costs.find(1));
  CHECK(error_of([&] { costs.add(1, CostModel({{1, 1}, {1, 1}})); }).code() ==
        Errc::invalid_argument);
}

}  // namespace costs_by_rows_test
