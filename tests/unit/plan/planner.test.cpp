// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/planner.hpp>

#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace planner_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a partition policy that ignores limits is refused, not asked forever") {
  auto const model = describe(toy_model({}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneLayerStages{}};
  PlanOptions options{
      .devices = 2, .micro_batches_per_round = 2, .rounds = 1, .device_memory = 256};
  auto const error =
      error_of([&] { return planner.plan_stages(model, blocks, costs, options).memory.bytes; });
  CHECK(error.code() == Errc::over_budget);
  std::string const words = "the smallest budget that works is ";
  options.device_memory =
      std::stoull(error.message().substr(error.message().find(words) + words.size()));
  CHECK(planner.plan_stages(model, blocks, costs, options).memory.bytes <= options.device_memory);
}

}  // namespace planner_test
