// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/residency_choice.hpp>

#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace residency_choice_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a forecast that finds copies faster lets nothing stay, and any other as much as can") {
  auto const model = describe(toy_model({.dense = 3}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneLayerStages{}};
  PlanOptions options{.micro_batches_per_round = 2, .device_memory = 1_GiB};
  auto const resident = [&](double a_boundary_s) {
    return planner
        .plan_stages(model,
                     blocks,
                     costs,
                     options,
                     [&](StagePlan const& plan) {
                       return static_cast<double>(plan.resident.size()) * a_boundary_s;
                     })
        .resident.size();
  };
  CHECK(resident(1) == 0);
  CHECK(resident(0) > 0);
  CHECK(resident(-1) > 0);
  options.resident_boundaries = true;
  CHECK(resident(1) > 0);
  options.resident_boundaries = false;
  CHECK(resident(-1) == 0);
  options.devices = 2;
  CHECK(resident(-1) == 0);
  options.reaches_peers = true;
  CHECK(resident(-1) > 0);
  CHECK(resident(1) == 0);
  options.peer_boundaries = true;
  CHECK(resident(1) > 0);
  options = {.micro_batches_per_round = 2, .device_memory = 1_GiB, .host_memory = 1};
  options.host_bytes = [](StagePlan const& plan) { return plan.resident.empty() ? 2 : 1; };
  CHECK(resident(1) > 0);  // the host has room for nothing else
}

TEST_CASE("of a plan without a forecast, a search looks at what keeps most boundaries alone") {
  auto const model = describe(toy_model({.dense = 3}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneForwardStage{}};
  PlanOptions const options{.devices = 2,
                            .micro_batches_per_round = 2,
                            .device_memory = 1_GiB,
                            .resident_boundaries = false,
                            .reaches_peers = true,
                            .peer_boundaries = false};
  auto const plan = planner.plan_stages(model, blocks, costs, options);
  ScheduleShape const shape{.forward_stages = plan.partition.forward.size(),
                            .backward_stages = plan.partition.backward.size(),
                            .devices = 2,
                            .micro_batches_per_round = 2};
  auto const slots = order_slots(shape, RoundRobinSchedule{}.tasks(shape));
  std::vector<std::size_t> seen;
  auto const kept = [&](PlanOptions each, detail::ResidencyTrial trial) {
    seen.clear();
    each.resident_boundaries = each.peer_boundaries = std::nullopt;
    auto const forecast = [&](StagePlan const& with) {
      seen.push_back(with.resident.size());
      return 1.0;
    };
    auto const unknown = std::numeric_limits<double>::infinity();
    return detail::keep_resident({plan, unknown}, slots, {}, each, forecast, trial)
        .plan.resident.size();
  };
  auto const all = kept(options, detail::ResidencyTrial::all);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] < seen[1]);
  CHECK(kept(options, detail::ResidencyTrial::most) == all);
  CHECK(seen == std::vector<std::size_t>{all});
  auto alone = options;
  alone.reaches_peers = false;
  CHECK(kept(alone, detail::ResidencyTrial::most) > 0);
  CHECK(seen.size() == 1);
}

}  // namespace residency_choice_test
