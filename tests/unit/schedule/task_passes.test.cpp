// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/schedule/task_passes.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace task_passes_test {

using namespace roundpipe;

TEST_CASE("the tasks of a stage together run its passes, in order") {
  LayerRange const range{2, 3};
  for (auto const kind :
       {StageKind::forward, StageKind::fused, StageKind::backward, StageKind::evaluate}) {
    std::vector<Pass> passes;
    for (auto const task : task_kinds(kind)) {
      auto const of_task = passes_over(layer_passes(task), range);
      passes.insert(passes.end(), of_task.begin(), of_task.end());
    }
    CHECK(passes == passes_over(layer_passes(kind), range));
  }
}

TEST_CASE("a backward stage is two tasks, every other stage one") {
  CHECK(task_kinds(StageKind::forward) == std::vector{TaskKind::forward});
  CHECK(task_kinds(StageKind::evaluate) == std::vector{TaskKind::forward});
  CHECK(task_kinds(StageKind::fused) == std::vector{TaskKind::fused});
  CHECK(task_kinds(StageKind::backward) == std::vector{TaskKind::recompute, TaskKind::backward});
}

TEST_CASE("the task for one kind of pass runs passes of that kind") {
  for (auto const kind : {PassKind::forward,
                          PassKind::recompute,
                          PassKind::backward,
                          PassKind::input_gradient,
                          PassKind::weight_gradient}) {
    auto const passes = layer_passes(task_kind(kind));
    REQUIRE(passes.size() == 1);
    CHECK(passes.front().kind == kind);
  }
}

}  // namespace task_passes_test
