// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/successors.hpp>

#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace successors_test {

using namespace roundpipe;
using test::graph_of;
using test::Made;

TEST_CASE("the end of an action lets those go on that wait for it, and the next on its lane") {
  auto const compute = [](std::size_t device) {
    return Made(ActionKind::forward, LaneKind::compute, device);
  };
  auto const up = Made(ActionKind::upload_activation, LaneKind::activation_up, 1);
  auto const graph =
      graph_of({compute(0), compute(1).after({0}), Made(up).after({0}), compute(0), compute(1)},
               GraphRole::call,
               2);
  GraphSequence sequence(2);
  auto const actions = sequence.add(graph).add(graph).unroll();
  detail::Successors const successors(actions);
  auto const waiting_for = [&](std::size_t i) {
    auto const numbers = successors.waiting_for(i);
    return std::vector<std::size_t>(numbers.begin(), numbers.end());
  };
  CHECK(waiting_for(0) == std::vector<std::size_t>{1, 2});
  CHECK(waiting_for(1).empty());
  CHECK(waiting_for(5) == std::vector<std::size_t>{6, 7});
  CHECK(successors.next_on_lane(0) == 3);
  CHECK(successors.next_on_lane(2) == 7);
  CHECK(successors.next_on_lane(3) == 5);  // of the next graph
  CHECK(successors.next_on_lane(9) == std::nullopt);
}

}  // namespace successors_test
