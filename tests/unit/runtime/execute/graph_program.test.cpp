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
  CHECK(program.of_issuer({DeviceId(0), Issuer::Part::rest}) ==
        std::vector{ActionId(0), ActionId(2)});
  CHECK(program.of_issuer({DeviceId(0), Issuer::Part::parameters}).empty());
  REQUIRE(program.of_host(LaneKind::accumulate).size() == 1);
  CHECK(program.of_host(LaneKind::accumulate)[0] == ActionId(1));
  CHECK(program.of_host(LaneKind::optimizer).empty());
  CHECK(program.host_lanes() == 1);
  CHECK(program.position(ActionId(2)) == 1);
  CHECK(program.tails() == std::vector{ActionId(1), ActionId(2)});
  CHECK(program.label(ActionId(1)) == "accumulate gradient");
}

TEST_CASE("one thread issues the parameters that go up to a device, another one the rest") {
  ActionGraph graph;
  graph.devices = 3;
  auto const on_device = [](LaneKind kind, std::size_t device) {
    auto action = on(kind, {});
    action.lane.device = DeviceId(device);
    return action;
  };
  graph.actions = {on_device(LaneKind::compute, 1),
                   on_device(LaneKind::parameter_up, 1),
                   on_device(LaneKind::save_up, 1),
                   on_device(LaneKind::parameter_up, 2),
                   on_device(LaneKind::compute, 2)};
  GraphProgram const program(graph);
  CHECK(program.of_issuer({DeviceId(1), Issuer::Part::rest}) ==
        std::vector{ActionId(0), ActionId(2)});
  CHECK(program.of_issuer({DeviceId(1), Issuer::Part::parameters}) == std::vector{ActionId(1)});
  CHECK(program.position(ActionId(1)) == 0);
  CHECK(program.position(ActionId(2)) == 1);
  CHECK_FALSE(program.first_on(DeviceId(0)).has_value());
  CHECK(program.first_on(DeviceId(1)) == ActionId(0));
  CHECK(program.first_on(DeviceId(2)) == ActionId(3));
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
