// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/device_actions.hpp>

#include <support/error_of.hpp>
#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>

namespace device_actions_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a parameter upload brings the master copy to its device's arena") {
  PlannedCall test;
  DeviceActions<PlannedCall::Model, HostBackend> actions(
      test.model, test.backend, 2, test.plan.stages.memory, test.parameters, test.boundaries);
  REQUIRE(actions.arenas().size() == 2);
  DevicePlaces const places(test.plan.stages.memory, actions.arenas());
  DeviceCopies const copies(places, test.parameters, test.boundaries);
  auto const& graph = test.program.graph();
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    if (graph.actions[i].kind != ActionKind::upload_parameters) {
      continue;
    }
    DeviceAction const here{test.run, graph.actions[i], graph.actions[i].lane.device};
    CopyList list;
    copies.list(here, list);
    auto stream = test.backend.make_stream(here.device, LaneKind::parameter_up);
    actions.issue(test.run, ActionId(i), stream, here.device);
    stream.synchronize();
    for (auto const& [to, from] : list.uploads) {
      CHECK(std::memcmp(to.device_pointer(), from.data(), from.size()) == 0);
    }
  }
}

TEST_CASE("an action of the host is refused") {
  PlannedCall test;
  DeviceActions<PlannedCall::Model, HostBackend> actions(
      test.model, test.backend, 2, test.plan.stages.memory, test.parameters, test.boundaries);
  ActionGraph graph;
  graph.devices = 1;
  graph.actions.emplace_back().kind = ActionKind::optimizer_step;
  graph.actions.front().lane.device = DeviceId(0);
  GraphProgram const program(graph);
  RunState const run(program, test.call);
  auto stream = test.backend.make_stream(DeviceId(0), LaneKind::compute);
  CHECK(error_of([&] { actions.issue(run, ActionId(0), stream, DeviceId(0)); }).code() ==
        Errc::unsupported);
}

}  // namespace device_actions_test
