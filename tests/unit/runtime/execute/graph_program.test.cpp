// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/graph_program.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace graph_program_test {

namespace {

using namespace roundpipe;

Action on(LaneKind kind, std::vector<ActionId> waits) {
  Action action;
  action.kind = kind == LaneKind::accumulate ? ActionKind::accumulate_gradient
                                             : ActionKind::download_gradients;
  action.lane = {kind, kind == LaneKind::accumulate ? DeviceId::none() : DeviceId(0)};
  action.waits = std::move(waits);
  return action;
}

}  // namespace

TEST_CASE("of the users of a ring, those are kept that later graphs must wait for") {
  ActionGraph graph;
  graph.devices = 1;
  Ring const landing{BufferKind::landing, DeviceId::none(), 0};
  graph.actions = {on(LaneKind::gradient_down, {}),
                   on(LaneKind::gradient_down, {}),
                   on(LaneKind::accumulate, {ActionId(1)}),
                   on(LaneKind::gradient_down, {})};
  SUBCASE("the last user on each lane, unless another user has waited for it") {
    graph.rings[landing].users = {{ActionId(0), ActionId(1), ActionId(2)}};
    GraphProgram const program(graph);
    CHECK(program.graph().rings.at(landing).users.front() == std::vector{ActionId(2)});
  }
  SUBCASE("also a user that nobody has waited for") {
    graph.rings[landing].users = {{ActionId(0), ActionId(2), ActionId(3)}};
    GraphProgram const program(graph);
    CHECK(program.graph().rings.at(landing).users.front().size() == 2);
  }
}

TEST_CASE("a program finds actions by thread, and names them") {
  ActionGraph graph;
  graph.devices = 1;
  graph.actions = {on(LaneKind::gradient_down, {}),
                   on(LaneKind::accumulate, {ActionId(0)}),
                   on(LaneKind::gradient_down, {})};
  GraphProgram const program(graph);
  CHECK(program.of_device(0) == std::vector{ActionId(0), ActionId(2)});
  REQUIRE(program.of_host(LaneKind::accumulate).size() == 1);
  CHECK(program.of_host(LaneKind::accumulate)[0] == ActionId(1));
  CHECK(program.of_host(LaneKind::optimizer).empty());
  CHECK(program.host_lanes() == 1);
  CHECK(program.position(ActionId(2)) == 1);
  CHECK(program.tails() == std::vector{ActionId(1), ActionId(2)});
  CHECK(program.label(ActionId(1)) == "accumulate gradient");
}

TEST_CASE("a program names the actions for whose results the controller waits") {
  ActionGraph graph;
  graph.devices = 1;
  graph.actions = {on(LaneKind::optimizer, {}), on(LaneKind::optimizer, {})};
  graph.actions[1].kind = ActionKind::gradient_norm;
  GraphProgram const program(graph);
  CHECK(program.norms() == std::vector{ActionId(1)});
  CHECK(program.losses().empty());
}

}  // namespace graph_program_test
