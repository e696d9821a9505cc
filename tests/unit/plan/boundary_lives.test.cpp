// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/plan/boundary_lives.hpp>

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace boundary_lives_test {

namespace {

using namespace roundpipe;

/// Six layers with boundaries of 64 KiB, and a loss, in stages of one layer or two.
struct Problem {
  Problem() {
    std::vector<LayerBytes> layers(7, {1_MiB, 2_MiB, 64_KiB, 4_MiB, 256_KiB});
    layers.back() = {1_MiB, 2_MiB, 0, 0, 256_KiB};
    model = describe_bytes(layers);
    blocks = form_blocks(model, true);
    options.device_memory = 40_MiB;
    options.checkpoints = Checkpoints::layers;
  }
  [[nodiscard]] StagePlan plan() const {
    return planner.plan_stages(model, blocks, costs, options);
  }
  [[nodiscard]] std::vector<Slot> slots(StagePlan const& made) const {
    auto const shape = planner.training_shape(made, options);
    return order_slots(shape, planner.schedule().tasks(shape));
  }

  Planner<RoundRobinSchedule, PriorityTransferEngine, LayerEventProtocol, Partitioner> planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{1}, Partitioner{}};
  ModelDescription model;
  CostModel costs{std::vector<LayerCost>(7, {1e-3, 2e-3})};
  ParameterBlocks blocks;
  PlanOptions options{.devices = 2, .micro_batches_per_round = 4, .rounds = 3};
};

}  // namespace

TEST_CASE("each boundary and gradient lives from the stage that makes it to its last reader") {
  Problem const problem;
  auto const plan = problem.plan();
  auto const slots = problem.slots(plan);
  auto const lives = detail::boundary_lives(plan.train, slots, 4);
  REQUIRE(plan.train.size() > 3);
  std::size_t from = 0;
  for (auto const& life : lives) {
    CHECK(life.from >= from);
    from = life.from;
    CHECK(life.bytes == 64_KiB);
    REQUIRE_FALSE(life.readers.empty());
    for (auto const& reader : life.readers) {
      CHECK(reader.until > life.from);
      CHECK(reader.stage >= life.stage);
    }
  }
  // Of each of six layers a boundary, and of each stage behind the fused one a gradient.
  auto const gradients = plan.partition.backward.size() - 1;
  auto const fused = plan.partition.backward.front().count;
  CHECK(lives.size() == 4 * 3 * (7 - fused + gradients));
}

TEST_CASE("stages hand on what the next one on another device reads") {
  Problem problem;
  auto const plan = problem.plan();
  auto slots = problem.slots(plan);
  auto const handed_on = 3 * (plan.partition.size() - 1) * 64_KiB;  // in three rounds
  CHECK(detail::handed_on(plan.train, slots) == handed_on);
  CHECK(problem.planner.handed_on(plan, problem.options) == 4 * handed_on);
  for (auto& slot : slots) {
    slot.device = DeviceId(slot.stage.index() / 2 % 2);  // two stages in a row
  }
  CHECK(detail::handed_on(plan.train, slots) == 3 * ((plan.partition.size() - 1) / 2) * 64_KiB);
  problem.options.reaches_peers = true;
  CHECK(problem.planner.handed_on(plan, problem.options) == 0);
  problem.options.reaches_peers = false;
  problem.options.devices = 1;
  CHECK(problem.planner.handed_on(plan, problem.options) == 0);
}

}  // namespace boundary_lives_test
