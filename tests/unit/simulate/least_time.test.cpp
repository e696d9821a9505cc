// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/least_time.hpp>

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/action_times.hpp>
#include <roundpipe/simulate/forecast.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace least_time_test {

namespace {

using namespace roundpipe;

/// Twelve layers that offer three levels, and a loss.
struct Problem {
  Problem() {
    std::vector<LayerBytes> layers(13, {1_MiB, 2_MiB, 64_KiB, 4_MiB, 256_KiB});
    layers.back() = {1_MiB, 2_MiB, 0, 0, 256_KiB};
    model = describe_bytes(layers);
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
      model.layers[i].save_levels = {0, 1_MiB, 4_MiB};
    }
    blocks = form_blocks(model, true);
    step = planner.step_graph(blocks, {});
    device.streams_keep_engines = true;
    options.device_memory = 64_MiB;
  }

  [[nodiscard]] StagePlan plan() const {
    return planner.plan_stages(model, blocks, costs, options);
  }
  [[nodiscard]] CallOutline outline(StagePlan const& made) const {
    return {.shape = planner.training_shape(made, options),
            .handed_on = planner.handed_on(made, options)};
  }
  [[nodiscard]] ActionGraph call(StagePlan const& made) const {
    return planner.streamed_graph(blocks, made, options);
  }
  [[nodiscard]] double least(StagePlan const& made) const {
    return least_training_seconds(made.train, blocks, outline(made), costs, device);
  }
  [[nodiscard]] double forecast(StagePlan const& made) const {
    return forecast_training_seconds(call(made), step, costs, device);
  }

  Planner<RoundRobinSchedule, PriorityTransferEngine, LayerEventProtocol, Partitioner> planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{1}, Partitioner{}};
  DeviceProperties device;
  ModelDescription model;
  CostModel costs{std::vector<LayerCost>(
      13, {.forward_s = 1e-3, .backward_s = 2e-3, .replay_s = {0.9e-3, 0.5e-3}})};
  ParameterBlocks blocks;
  ActionGraph step;
  PlanOptions options{.micro_batches_per_round = 4};
};

double bytes_of(ActionGraph const& graph, ActionKind kind) {
  double sum = 0;
  for (auto const& action : graph.actions) {
    sum += action.kind == kind ? static_cast<double>(action.bytes) : 0;
  }
  return sum;
}

}  // namespace

TEST_CASE("no forecast is below the bound, whatever limits an iteration") {
  for (std::size_t const devices : {1, 2, 3}) {
    for (std::size_t const rounds : {1, 3}) {
      for (double const rate : {0.2e9, 2e9, 50e9}) {
        for (double const host_rate : {0.0, 1e9}) {
          for (std::size_t level = 0; level < 3; ++level) {
            CAPTURE(devices);
            CAPTURE(rounds);
            CAPTURE(rate);
            CAPTURE(level);
            Problem problem;
            problem.options.devices = devices;
            problem.options.rounds = rounds;
            problem.options.save_levels.emplace(12, std::vector<std::size_t>(4, level));
            problem.device.upload_bytes_per_second = rate;
            problem.device.download_bytes_per_second = rate;
            problem.device.host_bytes_per_second = host_rate;
            auto const plan = problem.plan();
            CHECK(problem.least(plan) <= (1 + 1e-9) * problem.forecast(plan));
          }
        }
      }
    }
  }
}

TEST_CASE("where devices never wait, the bound is the forecast") {
  Problem problem;
  problem.options.save_levels.emplace(12, std::vector<std::size_t>(4, 1));
  problem.device.upload_bytes_per_second = problem.device.download_bytes_per_second = 1e15;
  problem.device.memory_bytes_per_second = 1e18;
  auto const plan = problem.plan();
  auto const fused = plan.partition.backward.front().count;
  auto const others = static_cast<double>(13 - fused);
  auto const seconds = 4 * (13 * 3e-3 + others * 0.5e-3);  // M_R micro-batches
  CHECK(problem.least(plan) == doctest::Approx(seconds));
  CHECK(problem.forecast(plan) == doctest::Approx(seconds));
}

TEST_CASE("behind a stage's checkpoint, the output of its last layer is not made once more") {
  Problem problem;
  problem.options.device_memory = 32_MiB;
  problem.device.upload_bytes_per_second = problem.device.download_bytes_per_second = 1e15;
  problem.device.memory_bytes_per_second = 1e18;
  auto const plan = problem.plan();
  REQUIRE(plan.train.front().working_set.checkpoints() == Checkpoints::stages);
  auto const others = static_cast<double>(13 - plan.partition.backward.front().count);
  auto const stages = static_cast<double>(plan.partition.backward.size() - 1);
  REQUIRE(stages > 1);
  auto const seconds = 4 * (13 * 3e-3 + others * 1e-3 - stages * 0.1e-3);
  CHECK(problem.least(plan) == doctest::Approx(seconds));
  CHECK(problem.forecast(plan) == doctest::Approx(seconds));
  CHECK(slot_iteration_seconds(plan.train, problem.outline(plan).shape, problem.costs.layers()) ==
        doctest::Approx(seconds));
}

TEST_CASE("rounds that recompute less than the others are in the bound") {
  Problem problem;
  problem.options.rounds = 2;
  problem.options.save_levels.emplace(12, std::vector<std::size_t>(4, 0));
  problem.options.levels_of_rounds[1].assign(12, std::vector<std::size_t>(4, 2));
  auto const plan = problem.plan();
  CHECK(slot_iteration_seconds(plan.train, problem.outline(plan).shape, problem.costs.layers()) <=
        (1 + 1e-9) * problem.forecast(plan));
}

TEST_CASE("where slots are dealt, devices that wait for each other are in the bound") {
  std::size_t waiting = 0;
  for (std::size_t const devices : {1, 2, 3, 5}) {
    for (std::size_t const rounds : {1, 3}) {
      for (std::size_t const micro_batches : {1, 2, 4, 8}) {
        for (std::size_t level = 0; level < 3; ++level) {
          CAPTURE(devices);
          CAPTURE(rounds);
          CAPTURE(micro_batches);
          CAPTURE(level);
          Problem problem;
          problem.options.devices = devices;
          problem.options.rounds = rounds;
          problem.options.micro_batches_per_round = micro_batches;
          problem.options.save_levels.emplace(12, std::vector<std::size_t>(micro_batches, level));
          problem.device.upload_bytes_per_second = problem.device.download_bytes_per_second = 1e15;
          problem.device.memory_bytes_per_second = 1e18;
          auto const plan = problem.plan();
          auto call = problem.outline(plan);
          auto const slots_s =
              slot_iteration_seconds(plan.train, call.shape, problem.costs.layers());
          auto const forecast_s = problem.forecast(plan);
          CHECK(slots_s >= (1 - 1e-9) * problem.least(plan));
          CHECK(slots_s <= 1.03 * forecast_s);
          CHECK(slots_s >= 0.8 * forecast_s);
          call.dealt_round_robin = true;
          CHECK(least_training_seconds(
                    plan.train, problem.blocks, call, problem.costs, problem.device) ==
                std::max(slots_s, problem.least(plan)));
          waiting += slots_s > 1.2 * problem.least(plan) ? 1 : 0;
        }
      }
    }
  }
  CHECK(waiting > 20);
}

TEST_CASE("the bound of links counts saves, parameters and what is handed on, each way") {
  Problem problem;
  problem.options.devices = 2;
  problem.options.rounds = 2;
  problem.options.save_levels.emplace(12, std::vector<std::size_t>{2, 1, 0, 2});
  auto const plan = problem.plan();
  auto const graph = problem.call(plan);
  auto const saves = bytes_of(graph, ActionKind::download_save);
  // Eight micro-batches, and from stage to stage the boundary of a layer.
  auto const handed_on = static_cast<double>(8 * (plan.partition.size() - 1) * 64_KiB);
  auto const down = saves + handed_on;
  auto const up = down + bytes_of(graph, ActionKind::upload_parameters);
  REQUIRE(saves > 0);
  REQUIRE(bytes_of(graph, ActionKind::upload_save) == saves);
  auto const least = [&](auto const& change) {
    SimulationOptions machine;
    machine.compute.layers = problem.costs.layers();
    change(machine.link);
    return least_iteration_seconds(plan.train, problem.blocks, problem.outline(plan), machine);
  };
  using Link = LinkModel;
  CHECK(least([](Link& link) { link.upload_bytes_per_second = 1e6; }) ==
        doctest::Approx(up / 2 / 1e6));
  CHECK(least([](Link& link) { link.download_bytes_per_second = 1e6; }) ==
        doctest::Approx(down / 2 / 1e6));
  CHECK(least([](Link& link) { link.root_upload_bytes_per_second = 1e6; }) ==
        doctest::Approx(up / 1e6));
  CHECK(least([](Link& link) { link.root_download_bytes_per_second = 1e6; }) ==
        doctest::Approx(down / 1e6));
  CHECK(least([](Link& link) {
          link.host_bytes_per_second = 1e6;
          link.host_download_weight = 1.5;
        }) == doctest::Approx((up + 1.5 * down) / 1e6));
}

TEST_CASE("the bound of a plan has the margins of its forecast") {
  Problem problem;
  problem.device.host_bytes_per_second = 1e6;  // the limit
  for (std::size_t const devices : {1, 2}) {
    problem.options.devices = devices;
    auto const plan = problem.plan();
    auto const machine = with_link_margin(training_machine(problem.costs, problem.device), devices);
    CHECK(problem.least(plan) ==
          least_iteration_seconds(plan.train, problem.blocks, problem.outline(plan), machine));
  }
}

TEST_CASE("what stays on devices for a call is not counted") {
  Problem problem;
  problem.options.device_memory = 1_GiB;
  problem.options.buffering = Buffering{1, 1, 1, 1};
  auto const plan = problem.plan();
  REQUIRE(plan.train.size() == 1);  // one stage of one entry: all parameters stay
  SimulationOptions machine;
  machine.compute.layers = problem.costs.layers();
  machine.link.upload_bytes_per_second = 1;
  CHECK(least_iteration_seconds(plan.train, problem.blocks, problem.outline(plan), machine) ==
        doctest::Approx(4 * 13 * 3e-3));
}

}  // namespace least_time_test
