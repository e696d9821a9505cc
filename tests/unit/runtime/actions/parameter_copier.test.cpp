// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/parameter_copier.hpp>

#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace parameter_copier_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("when P copies write the master copy, updates leave it unchanged") {
  HostParameters f({.updater = {.writes_masters = false}, .type = DType::bf16});
  auto const before = f.master(0);
  f.land_all(1);
  f.updater.update(BlockId(0), 1, 1);
  CHECK(f.master(0) == before);
  f.copier.copy(BlockId(0));
  CHECK(f.master(0) == static_cast<float>(BFloat16(f.weights(BlockId(0), 0)[0])));
  CHECK(f.master(0) != before);
}

TEST_CASE("P copies that have begun are finished after an error, unless gradients are missing") {
  for (bool const finishes : {true, false}) {
    HostParameters f({.updater = {.writes_masters = false, .finishes_steps = finishes}});
    ActionGraph graph;
    graph.role = GraphRole::step;
    for (std::size_t b = 0; b < f.blocks.blocks.size(); ++b) {
      auto& action = graph.actions.emplace_back();
      action.kind = ActionKind::copy_parameters;
      action.lane = {LaneKind::parameter_copy, DeviceId::none()};
      action.block = BlockId(b);
    }
    REQUIRE(graph.actions.size() > 1);
    GraphProgram const program(graph);
    CallData call;
    call.iteration = 8;
    RunState const run(program, call);
    f.copier.abandon(run, ActionId(0));
    CHECK_FALSE(f.progress.has_begun());
    f.copier.run(run, ActionId(0));
    CHECK(f.progress.has_begun());
    CHECK(f.progress.is_copying());
    f.copier.abandon(run, ActionId(1));
    CHECK(f.progress.is_copying() != finishes);
    CHECK(f.progress.copied_step() == (finishes ? 7 : 0));
  }
}

}  // namespace parameter_copier_test
