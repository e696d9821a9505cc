// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/evaluation_runs.hpp>

#include <support/logged_work.hpp>
#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace evaluation_runs_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE(
    "a batch is evaluated a round at a time, and each number of micro-batches has one graph") {
  PlannedCall planned;
  LoggedWork work;
  BatchFeed feed(planned.model, {2, 3});
  auto common = planned.call;
  common.stages = planned.plan.stages.evaluate;
  common.evaluating = true;
  std::vector<std::size_t> graphs;
  std::vector<std::size_t> rounds;
  auto const make_program = [&](std::size_t micro_batches) {
    graphs.push_back(micro_batches);
    return GraphProgram(planned.planner.evaluation_graph(planned.plan.blocks,
                                                         planned.plan.stages,
                                                         plan_options(PlannedCall::options()),
                                                         micro_batches));
  };
  Executor<HostBackend> executor(planned.backend, work, work.host_lanes(), 2);
  RunSlots<HostBackend> slots(executor, PlannedCall::options());
  EvaluationRuns<HostBackend> runs(slots, std::move(common), make_program);
  ToyData const data(5, {2, 3}, 1);
  auto const batch = data.batch();
  auto const sliced = feed.slice(batch);
  for (int repeat = 0; repeat < 2; ++repeat) {
    rounds.clear();
    auto const evaluation =
        runs.run(feed, batch, sliced, {}, [&](RunSlot<HostBackend> const& slot, double sum) {
          CHECK(slot.data().evaluating);
          CHECK(slot.data().gradient_scale == sliced.gradient_scale);
          rounds.push_back(slot.data().shapes.size());
          return slots.wait_for_loss(slot, sum) + 1;
        });
    CHECK(rounds == std::vector<std::size_t>{2, 2, 1});
    CHECK(evaluation.loss == 3);
    CHECK(evaluation.tables.size() == 5);
    CHECK(evaluation.results.size() == 5);
  }
  CHECK(graphs == std::vector<std::size_t>{2, 1});
  executor.synchronize();
}

}  // namespace evaluation_runs_test
