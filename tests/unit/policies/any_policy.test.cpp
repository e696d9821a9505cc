// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/policies/any_policy.hpp>

#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/uniform_partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/schedule/gpipe_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/policy_archetypes.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <vector>

namespace any_policy_test {

namespace {

using namespace roundpipe;

// Each models one concept, whatever it is made of, and the smallest models will do.
static_assert(Schedule<AnySchedule> && !TransferPolicy<AnySchedule>);
static_assert(TransferPolicy<AnyTransfers> && !EventProtocol<AnyTransfers>);
static_assert(EventProtocol<AnyProtocol> && !PartitionPolicy<AnyProtocol>);
static_assert(PartitionPolicy<AnyPartitioner> && !Schedule<AnyPartitioner>);
static_assert(std::convertible_to<test::ScheduleArchetype, AnySchedule>);
static_assert(std::convertible_to<test::TransferPolicyArchetype, AnyTransfers>);
static_assert(std::convertible_to<test::EventProtocolArchetype, AnyProtocol>);
static_assert(std::convertible_to<test::PartitionPolicyArchetype, AnyPartitioner>);

ScheduleShape shape_of(std::size_t forward_stages, bool fused) {
  ScheduleShape shape;
  shape.forward_stages = forward_stages;
  shape.backward_stages = 2;
  shape.devices = 2;
  shape.micro_batches_per_round = 2;
  shape.fused = fused;
  return shape;
}

}  // namespace

TEST_CASE("the chosen schedule deals the tasks") {
  auto const shape = shape_of(1, true);
  AnySchedule schedule = RoundRobinSchedule{};
  CHECK(schedule.tasks(shape) == RoundRobinSchedule{}.tasks(shape));
  CHECK(schedule.advance(shape) == RoundRobinSchedule{}.advance(shape));
  CHECK(fuses(schedule));
  auto const unfused = shape_of(2, false);
  schedule = GPipeSchedule{};
  CHECK(schedule.tasks(unfused) == GPipeSchedule{}.tasks(unfused));
  CHECK(schedule.advance(unfused) == 0);
  CHECK_FALSE(fuses(schedule));
}

TEST_CASE("the chosen transfer policy cuts the chunks") {
  std::vector<Bytes> const tensors{1_MiB, 300, 2_MiB};
  AnyTransfers const planned = PriorityTransferEngine{1};
  CHECK(planned.chunks(tensors, 4) == PriorityTransferEngine{}.chunks(tensors, 4));
  CHECK(planned.activations_in_flight() == 1);
  AnyTransfers const unplanned = UnplannedTransfers{};
  CHECK(unplanned.chunks(tensors, 4) == UnplannedTransfers{}.chunks(tensors, 4));
  CHECK(unplanned.activations_in_flight() == UnplannedTransfers{}.activations_in_flight());
}

TEST_CASE("the chosen protocol orders the events") {
  for (int const staleness : {0, 1}) {
    auto const check_same = [&](auto const& policy) {
      AnyProtocol const chosen = policy;
      CHECK(chosen.staleness() == policy.staleness());
      CHECK(chosen.master_copies() == policy.master_copies());
      CHECK(chosen.gradient_buffers() == policy.gradient_buffers());
      CHECK(copies_parameters(chosen) == copies_parameters(policy));
      for (auto const kind : {BlockEventKind::upload, BlockEventKind::optimizer_step}) {
        CHECK(chosen.before({BlockId(1), kind, 0}, 3) == policy.before({BlockId(1), kind, 0}, 3));
      }
    };
    check_same(LayerEventProtocol{staleness});
    check_same(BlockingProtocol{staleness});
  }
}

TEST_CASE("the chosen partitioner cuts the stages") {
  std::vector<LayerCost> costs(20, {1, 2});
  costs.push_back({3, 6});
  PartitionProblem const problem{.costs = costs, .devices = 4, .micro_batches_per_call = 16};
  AnyPartitioner const exact = Partitioner{};
  CHECK(exact.partition(problem) == Partitioner{}.partition(problem));
  CHECK(yields_to_forecast(exact));
  AnyPartitioner const uniform = UniformPartitioner{};
  CHECK(uniform.partition(problem) == UniformPartitioner{}.partition(problem));
  CHECK_FALSE(uniform.partition(problem) == exact.partition(problem));
  CHECK_FALSE(yields_to_forecast(uniform));
}

TEST_CASE("a planner of chosen policies makes the plan of the policies themselves") {
  auto const model = describe(test::toy_model({}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  PlanOptions const options{
      .devices = 2, .micro_batches_per_round = 3, .rounds = 2, .device_memory = 1_MiB};
  auto const chosen = Policies{}.planner();
  Planner const direct{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  auto const plan = chosen.plan_stages(model, blocks, costs, options);
  CHECK(plan.partition == direct.plan_stages(model, blocks, costs, options).partition);
  CHECK(chosen.streamed_graph(blocks, plan, options).actions.size() ==
        direct.streamed_graph(blocks, plan, options).actions.size());
}

}  // namespace any_policy_test
