// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/sequence_order.hpp>

#include <roundpipe/core/random.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace sequence_order_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

Made on(LaneKind lane, std::size_t device) {
  return {ActionKind::forward, lane, device};
}

/// The relation by definition: everything reachable over waits and lanes.
std::vector<std::vector<bool>> closure(std::span<UnrolledAction const> actions) {
  std::vector<std::vector<bool>> before(actions.size(), std::vector<bool>(actions.size(), false));
  std::map<Lane, std::size_t> latest;
  for (std::size_t b = 0; b < actions.size(); ++b) {
    auto const follow = [&](std::size_t a) {
      before[b][a] = true;
      for (std::size_t i = 0; i < a; ++i) {
        before[b][i] = before[b][i] || before[a][i];
      }
    };
    for (auto const wait : actions[b].waits) {
      follow(wait);
    }
    if (auto const found = latest.find(actions[b].lane); found != latest.end()) {
      follow(found->second);
    }
    latest[actions[b].lane] = b;
  }
  return before;
}

}  // namespace

TEST_CASE(
    "an action ends before the actions that wait for it, and before later actions of its lane") {
  auto const graph = graph_of({on(LaneKind::compute, 0),
                               on(LaneKind::compute, 0),
                               on(LaneKind::compute, 1).after({1}),
                               on(LaneKind::activation_up, 1)});
  auto const actions = GraphSequence(2).add(graph).unroll();
  SequenceOrder const order(actions);
  CHECK(order.deadlock().empty());
  CHECK(order.holds(0, 1));
  CHECK(order.holds(1, 2));
  CHECK(order.holds(0, 2));
  CHECK_FALSE(order.holds(2, 0));
  CHECK_FALSE(order.holds(0, 0));
  CHECK_FALSE(order.holds(0, 3));
  CHECK_FALSE(order.holds(3, 0));
  CHECK(order.same_lane(0, 1));
  CHECK_FALSE(order.same_lane(1, 2));
}

TEST_CASE("issue order alone is not an order") {
  // Device 1 issues its upload after the compute that waits for device 0; the upload may run first.
  auto const graph = graph_of({on(LaneKind::compute, 0),
                               on(LaneKind::compute, 1).after({0}),
                               on(LaneKind::activation_up, 1)});
  auto const actions = GraphSequence(2).add(graph).unroll();
  SequenceOrder const order(actions);
  CHECK_FALSE(order.holds(0, 2));
  CHECK_FALSE(order.holds(1, 2));
}

TEST_CASE("everything before a synchronization ends before everything after it") {
  auto const graph = graph_of({on(LaneKind::compute, 0), on(LaneKind::compute, 1)});
  auto const actions = GraphSequence(2).add(graph).synchronize().add(graph).unroll();
  SequenceOrder const order(actions);
  CHECK(order.holds(0, 3));
  CHECK(order.holds(1, 2));
  CHECK_FALSE(order.holds(2, 1));
  CHECK_FALSE(order.holds(2, 3));
}

TEST_CASE("in random graphs the relation is the closure of waits and lanes") {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::uint64_t drawn = 0;
    auto const draw = [&](std::size_t count) {
      return static_cast<std::size_t>(random_word({seed, 0, 0, 0, 0}, drawn++) % count);
    };
    ActionGraph graph;
    graph.devices = 3;
    graph.advance = draw(3);
    for (std::size_t i = 0; i < 30; ++i) {
      auto made = on(draw(2) == 0 ? LaneKind::compute : LaneKind::activation_up, draw(3));
      for (std::size_t w = draw(3); i > 0 && w > 0; --w) {
        made.after({draw(i)});
      }
      graph.actions.push_back(made.action);
    }
    auto const actions = GraphSequence(3).add(graph).add(graph).unroll();
    SequenceOrder const order(actions);
    auto const before = closure(actions);
    REQUIRE(order.deadlock().empty());
    std::size_t wrong = 0;
    for (std::size_t a = 0; a < actions.size(); ++a) {
      for (std::size_t b = 0; b < actions.size(); ++b) {
        wrong += order.holds(a, b) == before[b][a] ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a cycle is listed action by action, each waiting for the next") {
  auto const graph = graph_of({on(LaneKind::compute, 0).after({2}),
                               on(LaneKind::compute, 1),
                               on(LaneKind::compute, 2).after({0}),
                               on(LaneKind::compute, 1).after({0})},
                              GraphRole::call,
                              3);
  auto const actions = GraphSequence(3).add(graph).unroll();
  auto circle = SequenceOrder(actions).deadlock();
  std::sort(circle.begin(), circle.end());
  CHECK(circle == std::vector<std::size_t>{0, 2});
}

TEST_CASE("the thread of the parameters waits for the host before it issues") {
  // The first compute is issued after the parameters, these after the sum, which waits for the
  // activation that is issued after the compute.
  auto const sum = Made(ActionKind::accumulate_gradient, LaneKind::accumulate);
  auto graph = graph_of({on(LaneKind::compute, 0).after({3}),
                         on(LaneKind::activation_up, 0),
                         Made(sum).after({1}),
                         on(LaneKind::parameter_up, 0).after({2})});
  auto const deadlock = [&] {
    return SequenceOrder(GraphSequence(2).add(graph).unroll()).deadlock();
  };
  CHECK(deadlock().size() == 4);
  graph.actions[3].waits.clear();
  CHECK(deadlock().empty());
}

TEST_CASE("an action that waits for itself is a cycle of one") {
  auto graph = graph_of({on(LaneKind::compute, 0), on(LaneKind::compute, 0)});
  graph.actions[1].waits = {ActionId(1)};
  auto const actions = GraphSequence(2).add(graph).unroll();
  CHECK(SequenceOrder(actions).deadlock() == std::vector<std::size_t>{1});
}

}  // namespace sequence_order_test
