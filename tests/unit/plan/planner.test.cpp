// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/planner.hpp>

#include <roundpipe/partition/partitioner.hpp>
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

TEST_CASE("a forecast chooses between fewer stages and more entries") {
  auto const model = describe(toy_model({.dense = 4}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  auto const whole =
      lay_out_stages(model, blocks, {{}, {{0, model.size()}}}, {1, 1, 1}).memory.bytes;
  PlanOptions const options{.micro_batches_per_round = 2, .device_memory = whole};
  auto const most_entries = planner.plan_stages(model, blocks, costs, options);
  CHECK(most_entries.partition.backward.size() > 1);
  auto const fewest_stages = [](StagePlan const& plan) {
    return static_cast<double>(plan.partition.size());
  };
  auto const one_stage = planner.plan_stages(model, blocks, costs, options, fewest_stages);
  CHECK(one_stage.partition.size() == 1);
  CHECK(one_stage.memory.bytes <= whole);
  auto const most_stages = [](StagePlan const& plan) {
    return -static_cast<double>(plan.partition.size());
  };
  CHECK(planner.plan_stages(model, blocks, costs, options, most_stages).partition.size() >=
        most_entries.partition.size());
}

}  // namespace planner_test
