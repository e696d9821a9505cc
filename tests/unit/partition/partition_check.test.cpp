// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/partition_check.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <vector>

namespace partition_check_test {

using namespace roundpipe;

TEST_CASE("a partition covers its model, in execution order and without empty stages") {
  Partition const good{{{0, 2}, {2, 1}}, {{3, 2}, {1, 2}, {0, 1}}};
  CHECK(covers(good, 5));
  CHECK_FALSE(covers(good, 4));
  CHECK_FALSE(covers(good, 6));
  CHECK(covers({{}, {{0, 5}}}, 5));
  CHECK_FALSE(covers({}, 0));
  CHECK_FALSE(covers({{{0, 5}}, {}}, 5));
  CHECK_FALSE(covers({{{0, 2}}, {{3, 2}, {0, 3}}}, 5));          // layer 2 has no forward
  CHECK_FALSE(covers({{{0, 1}, {2, 1}}, {{3, 2}, {0, 3}}}, 5));  // nor has layer 1 here
  CHECK_FALSE(covers({{{0, 2}, {1, 2}}, {{3, 2}, {0, 3}}}, 5));  // layer 1 has two
  CHECK_FALSE(covers({{{0, 4}}, {{3, 2}, {0, 3}}}, 5));          // layer 3 has two forwards
  CHECK_FALSE(covers({{{0, 3}}, {{3, 2}, {0, 2}}}, 5));          // layer 2 has no backward
  CHECK_FALSE(covers({{{0, 3}}, {{3, 2}, {1, 2}}}, 5));          // layer 0 has no backward
  CHECK_FALSE(covers({{{0, 3}}, {{3, 2}, {0, 2}, {2, 1}}}, 5));  // wrong order
  CHECK_FALSE(covers({{{0, 3}, {3, 0}}, {{3, 2}, {0, 3}}}, 5));  // an empty stage
  CHECK_FALSE(covers({{{0, 3}}, {{3, 2}, {3, 0}, {0, 3}}}, 5));  // another empty stage
  CHECK_FALSE(covers({{{0, 9}}, {{9, 2}}}, 5));                  // unknown layers
  CHECK_FALSE(covers({{{0, 3}}, {{3, static_cast<std::size_t>(-1)}}}, 5));
}

TEST_CASE("a partition fits when each of its stages fits") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(5), .devices = 1, .micro_batches_per_call = 1};
  Partition const partition{{{0, 3}}, {{3, 2}, {1, 2}, {0, 1}}};
  CHECK(fits(problem, partition));
  problem.fits = [](StageDirection direction, LayerRange range) {
    return range.count <= (direction == StageDirection::forward ? 3U : 2U);
  };
  CHECK(fits(problem, partition));
  CHECK_FALSE(fits(problem, {{{0, 4}}, {{4, 1}, {2, 2}, {0, 2}}}));
  CHECK(unfit_stage(problem, partition) == std::nullopt);
  CHECK(unfit_stage(problem, {{{0, 4}}, {{4, 1}, {2, 2}, {0, 2}}}) ==
        "forward stage 0 holds 4 layers from layer 0 on, and does not fit");
  CHECK_FALSE(fits(problem, {{{0, 3}}, {{3, 2}, {0, 3}}}));
  CHECK(unfit_stage(problem, {{{0, 3}}, {{3, 2}, {0, 3}}}) ==
        "backward stage 1 holds 3 layers from layer 0 on, and does not fit");
}

TEST_CASE("costs are finite and not negative, and there are some") {
  check(std::vector<LayerCost>{{0, 0}, {1, 2, 3.0}});
  auto const message = [](std::vector<LayerCost> const& costs) {
    auto const error = test::error_of([&] { check(costs); });
    CHECK(error.code() == Errc::invalid_argument);
    return error.message();
  };
  CHECK(message({}) == "a model without layers has no stages");
  CHECK(message({{1, 1}, {-1, 1}}).starts_with("the cost of layer 1 is -1"));
  (void)message({{1, std::numeric_limits<double>::infinity()}});
  (void)message({{1, 1, std::numeric_limits<double>::quiet_NaN()}});
}

}  // namespace partition_check_test
