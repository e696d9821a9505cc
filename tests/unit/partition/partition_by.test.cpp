// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/partition/partition_by.hpp>

#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace partition_by_test {

using namespace roundpipe;
using test::error_of;

TEST_CASE("the selected partitioner is used") {
  std::vector<LayerCost> costs(20, {1, 2});
  costs.push_back({3, 6});
  PartitionProblem const problem{.costs = costs, .devices = 4, .micro_batches_per_call = 16};
  SlotSimulationOptions const options{.asynchronous = false, .communication_s = 0.1};
  ChosenPartitioner const bound(PartitionBy::bound, options);
  ChosenPartitioner const simulation(PartitionBy::simulation, options);
  CHECK(bound.partition(problem) == Partitioner{}.partition(problem));
  CHECK(simulation.partition(problem) == SimulatedPartitioner(options).partition(problem));
  CHECK(ChosenPartitioner{}.partition(problem) == bound.partition(problem));
  CHECK(simulation.search(problem).call.seconds < bound.search(problem).call.seconds);
  CHECK(name_of(PartitionBy::bound) == std::string("bound"));
  CHECK(name_of(PartitionBy::simulation) == std::string("simulation"));
}

TEST_CASE("the bound's partition comes with the best rounds") {
  PartitionProblem problem{
      .costs = std::vector<LayerCost>(12, {1, 2}), .devices = 4, .micro_batches_per_call = 24};
  SlotSimulationOptions const options{.asynchronous = false, .communication_s = 0.1};
  auto const found = ChosenPartitioner(PartitionBy::bound, options).search(problem);
  CHECK(found.partition == Partitioner{}.partition(problem));
  SlotSimulation simulation(problem.costs, 4, 24, options);
  for (auto const round : round_sizes(problem)) {
    CHECK(found.call.seconds <= simulation.simulate(found.partition, round).seconds);
  }
  problem.micro_batches_per_round = {2};
  CHECK(ChosenPartitioner{}.search(problem).micro_batches_per_round == 2);
  problem.micro_batches_per_round = {5};
  CHECK(error_of([&] { (void)ChosenPartitioner{}.search(problem); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("a planner accepts either") {
  auto const model = describe(test::toy_model({}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  for (auto const by : {PartitionBy::bound, PartitionBy::simulation}) {
    Planner const planner{RoundRobinSchedule{},
                          PriorityTransferEngine{},
                          LayerEventProtocol{},
                          ChosenPartitioner(by)};
    auto const plan = planner.plan_stages(model, blocks, costs, {2, 3, 2, 1_MiB});
    PartitionProblem problem{.costs = costs.layers(), .devices = 2, .micro_batches_per_call = 6};
    problem.micro_batches_per_round = {3};
    CHECK(plan.partition == ChosenPartitioner(by).partition(problem));
  }
}

}  // namespace partition_by_test
