// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/concepts/partition_policy.hpp>

#include <doctest/doctest.h>

namespace partition_policy_test {

using namespace roundpipe;

TEST_CASE("a range of layers ends before the layer behind it") {
  LayerRange const range{2, 3};
  CHECK(range.end() == 5);
  CHECK_FALSE(range.contains(1));
  CHECK(range.contains(2));
  CHECK(range.contains(4));
  CHECK_FALSE(range.contains(5));
  CHECK_FALSE(LayerRange{2, 0}.contains(2));
}

TEST_CASE("a recomputation takes as long as a forward, unless it was measured") {
  LayerCost cost{.forward_s = 3, .backward_s = 5};
  CHECK(cost.recomputing_s() == 3);
  cost.recompute_s = 2;
  CHECK(cost.recomputing_s() == 2);
}

TEST_CASE("a recomputation from a save level has the level's own cost, or that from the start") {
  LayerCost const cost{.forward_s = 3, .backward_s = 5, .replay_s = {3, 2, 1}};
  CHECK(cost.replaying_s(1) == 2);
  CHECK(cost.replaying_s(2) == 1);
  CHECK(cost.replaying_s(3) == 3);
}

}  // namespace partition_policy_test
