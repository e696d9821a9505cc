// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/planner.hpp>

#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace planner_test {

using namespace roundpipe;
using namespace roundpipe::test;

/// The bytes of an entry for saves.
Bytes largest_save(StagePlan const& plan) {
  Bytes largest = 0;
  for (auto const& stage : plan.train) {
    largest = std::max(largest, stage.save_bytes);
  }
  return largest;
}

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
  CHECK(error.message().find(
            "PartitionPolicy::partition breaks rule 1: forward stage 0 holds 1 "
            "layers from layer 0 on, and does not fit; the device budget of 256") == 0);
  std::string const words = "the smallest budget that works is ";
  options.device_memory =
      std::stoull(error.message().substr(error.message().find(words) + words.size()));
  CHECK(planner.plan_stages(model, blocks, costs, options).memory.bytes <= options.device_memory);
}

TEST_CASE("a partition policy that refuses every budget is not asked forever for a larger one") {
  struct Never {
    [[nodiscard]] Partition partition(PartitionProblem const&) const {
      throw Error(Errc::over_budget, "never");
    }
  };
  auto const model = describe(toy_model({}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Never{}};
  PlanOptions const options{.devices = 2, .micro_batches_per_round = 2, .device_memory = 1_MiB};
  auto const error =
      error_of([&] { return planner.plan_stages(model, blocks, costs, options).memory.bytes; });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().find("the partition policy finds stages for no budget") !=
        std::string::npos);
  CHECK(error.message().find("rule 1") == std::string::npos);
}

TEST_CASE(
    "a partition policy with fewer slots than devices is not asked forever for shorter ones") {
  struct OneStage {
    [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
      return {{}, {{0, problem.costs.size()}}};
    }
  };
  auto const model = describe(toy_model({}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneStage{}};
  PlanOptions const options{.devices = 2, .micro_batches_per_round = 2, .device_memory = 1_MiB};
  CHECK(planner.plan_stages(model, blocks, costs, options).partition.size() == 1);
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

TEST_CASE("a forecast says how much the host keeps, unless that is given") {
  auto const model = describe(toy_model({.dense = 4}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(
      model.size(), {.forward_s = 1, .backward_s = 2, .replay_s = {1, 0.5}}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneLayerStages{}};
  PlanOptions options{.micro_batches_per_round = 8, .device_memory = 1_GiB};
  auto const kept = [&](StagePlan const& plan) {  // of all that four layers save, in eighths
    Bytes bytes = 0;
    for (std::size_t layer = 1; layer <= 4; ++layer) {
      for (std::size_t m = 0; m < 8; ++m) {
        bytes += plan.train.front().working_set.bytes(layer, m);
      }
    }
    return 8 * static_cast<double>(bytes) /
           static_cast<double>(4 * 8 * model.layers[1].footprint.saved_bytes);
  };
  auto const checkpoints = [](StagePlan const& plan) {
    return plan.train.front().working_set.checkpoints();
  };
  auto const plan = [&](PlanForecast const& forecast) {
    return planner.plan_stages(model, blocks, costs, options, forecast);
  };
  CHECK(checkpoints(plan({})) == Checkpoints::stages);
  auto const best_at = [&](double best) {
    return [&kept, best](StagePlan const& made) { return std::abs(kept(made) - best); };
  };
  CHECK(kept(plan(best_at(0))) == 0);
  CHECK(kept(plan(best_at(4))) == doctest::Approx(4).epsilon(0.1));
  CHECK(kept(plan(best_at(8))) > 5);  // the first layer saves nothing, while the link is idle
  auto const prefers_layers = [&](StagePlan const& made) {
    return (checkpoints(made) == Checkpoints::layers ? 0 : 1) + kept(made);
  };
  auto const layers = plan(prefers_layers);
  CHECK(checkpoints(layers) == Checkpoints::layers);
  CHECK(kept(layers) == 0);
  options.checkpoints = Checkpoints::stages;
  CHECK(checkpoints(plan(prefers_layers)) == Checkpoints::stages);
  CHECK(kept(plan(best_at(8))) == 0);
  options.checkpoints = std::nullopt;
  options.host_memory = 2'500;
  options.host_bytes = [&](StagePlan const& made) { return static_cast<Bytes>(1e3 * kept(made)); };
  CHECK(kept(plan(best_at(8))) <= 2.5);
  CHECK(kept(plan(best_at(8))) > 0);
  options.host_bytes = {};
  options.offloaded_micro_batches = 5;
  CHECK(kept(plan(best_at(0))) == 5);
  CHECK(kept(plan({})) == 5);
  options.checkpoints = Checkpoints::stages;
  CHECK(error_of([&] { (void)plan({}); }).code() == Errc::invalid_argument);
  options.checkpoints = std::nullopt;
  options.save_levels = {{}, {1, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 0, 0, 0, 0}};
  CHECK(kept(plan(best_at(0))) == doctest::Approx(2));
}

TEST_CASE("saves on their way get the entries that the device has room for") {
  auto const model = describe(toy_model({.dense = 4}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneLayerStages{}};
  PlanOptions options{
      .micro_batches_per_round = 4, .device_memory = 1_GiB, .offloaded_micro_batches = 4};
  options.resident_boundaries = false;  // they take the room that saves leave
  options.resident_parameters = false;
  auto const plan_in = [&](Bytes budget) {
    options.device_memory = budget;
    return planner.plan_stages(model, blocks, costs, options, [](auto const&) { return 1.0; });
  };
  auto const most = plan_in(1_GiB);
  REQUIRE(most.memory.buffering.saves == 8);
  auto const entry = largest_save(most);
  for (std::size_t fewer = 1; fewer <= 5; ++fewer) {
    auto const budget = most.memory.bytes - fewer * entry;
    CHECK(plan_in(budget).memory.buffering.saves == 8 - fewer);
    CHECK(plan_in(budget + entry - 1).memory.buffering.saves == 8 - fewer);
  }
  // A forecast that finds deeper rings slower is heeded.
  options.device_memory = 1_GiB;
  auto const shallow =
      planner.plan_stages(model, blocks, costs, options, [](StagePlan const& made) {
        return static_cast<double>(made.memory.buffering.saves);
      });
  CHECK(shallow.memory.buffering.saves < 4);
  options.offloaded_micro_batches = 0;
  CHECK(plan_in(1_GiB).memory.buffering.saves < 4);
}

TEST_CASE("entries of rings that are pinned stay, whatever else would be faster or have room") {
  auto const model = describe(toy_model({.dense = 4}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, OneLayerStages{}};
  PlanOptions options{.micro_batches_per_round = 4,
                      .device_memory = 1_GiB,
                      .offloaded_micro_batches = 4,
                      .resident_boundaries = false,
                      .resident_parameters = false};
  auto const prefers_many = [](StagePlan const& plan) {
    auto const& entries = plan.memory.buffering;
    return 1.0 / static_cast<double>(entries.parameters + entries.gradients + entries.saves);
  };
  auto const prefers_few = [&](StagePlan const& plan) { return 1 / prefers_many(plan); };
  for (auto const& pin : {Buffering{1, 1, 1, 1},
                          Buffering{2, 1, 2, 5},
                          Buffering{3, 2, 4, 2},
                          Buffering{2, 3, 1, 9}}) {
    options.buffering = pin;
    for (auto const& forecast :
         {PlanForecast(), PlanForecast(prefers_many), PlanForecast(prefers_few)}) {
      for (auto const& count : {std::optional<std::size_t>(4), std::optional<std::size_t>()}) {
        options.offloaded_micro_batches = count;
        auto const plan = planner.plan_stages(model, blocks, costs, options, forecast);
        CHECK(plan.memory.buffering == pin);
        CHECK(plan.memory.ring(BufferKind::parameters).count == pin.parameters);
      }
    }
  }
  // The frugal ways of buffering are not tried, and the refusal knows that.
  options.buffering = std::nullopt;
  options.offloaded_micro_batches = 0;
  auto const least = [&] {
    options.device_memory = 256;
    auto const message =
        error_of([&] { (void)planner.plan_stages(model, blocks, costs, options); }).message();
    std::string const words = "the smallest budget that works is ";
    return std::stoull(message.substr(message.find(words) + words.size()));
  };
  auto const frugal = least();
  options.buffering = Buffering{2, 2, 2, 2};
  auto const pinned = least();
  CHECK(frugal < pinned);
  options.device_memory = pinned;
  CHECK(planner.plan_stages(model, blocks, costs, options).memory.bytes <= pinned);
}

TEST_CASE("a ring without entries is refused, and one of more than any link could fill") {
  auto const model = describe(toy_model({}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  PlanOptions options{.device_memory = 1_GiB};
  for (auto const entries : {&Buffering::parameters,
                             &Buffering::gradients,
                             &Buffering::activations,
                             &Buffering::saves}) {
    for (std::size_t const wrong : {std::size_t{0}, most_ring_entries + 1}) {
      options.buffering = Buffering{};
      (*options.buffering).*entries = wrong;
      auto const error =
          error_of([&] { (void)planner.plan_stages(model, blocks, costs, options); });
      CHECK(error.code() == Errc::invalid_argument);
    }
  }
}

TEST_CASE("rounds overlap where the forecast says so, and only where there are several") {
  auto const model = describe(toy_model({.dense = 4}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  PlanOptions options{.micro_batches_per_round = 2,
                      .rounds = 3,
                      .device_memory = 32 * model.layers[1].footprint.saved_bytes,
                      .resident_parameters = false};
  auto const overlaps = [](StagePlan const& plan) {
    return plan.train.front().working_set.overlaps_rounds();
  };
  // Stages of one layer leave forward stages before the fused one.
  auto const prefers = [&](bool overlap) {
    return [&overlaps, overlap](StagePlan const& plan) {
      return (overlaps(plan) == overlap ? 1.0 : 2.0) -
             0.01 * static_cast<double>(plan.train.size());
    };
  };
  auto const plan = [&](PlanForecast const& forecast) {
    return planner.plan_stages(model, blocks, costs, options, forecast);
  };
  CHECK_FALSE(overlaps(plan({})));
  auto const overlapping = plan(prefers(true));
  CHECK(overlaps(overlapping));
  CHECK_FALSE(overlaps(plan(prefers(false))));
  auto const& set = overlapping.train.front().working_set;
  for (std::size_t layer = 0; layer + 1 < model.size(); ++layer) {
    CHECK(set.most_bytes(layer) == model.layers[layer].save_levels.back());
  }
  auto const graph = planner.streamed_graph(blocks, overlapping, options);
  CHECK(graph.rings.contains({BufferKind::parameters, DeviceId(0), forward_ring}));
  options.overlaps_rounds = false;
  CHECK_FALSE(overlaps(plan(prefers(true))));
  options.overlaps_rounds = true;
  CHECK(overlaps(plan({})));
  auto const pinned = plan(prefers(false));
  CHECK((overlaps(pinned) || pinned.train.size() == 1));  // one stage has nothing to overlap
  options.overlaps_rounds = std::nullopt;
  options.rounds = 1;
  CHECK_FALSE(overlaps(plan(prefers(true))));
  options.levels_of_rounds[0];
  CHECK(error_of([&] { (void)plan({}); }).code() == Errc::invalid_argument);
  options.save_levels.emplace();
  CHECK(plan({}).train.front().working_set.most_bytes(0) == 0);
  options.levels_of_rounds[1];
  CHECK(error_of([&] { (void)plan({}); }).code() == Errc::invalid_argument);
}

TEST_CASE("a policy that yields to the forecast gets stages that share the rings well") {
  std::vector<LayerBytes> layers(12, {1_MiB, 2_MiB, 64_KiB, 1_MiB, 256_KiB});
  layers.front() = {4_MiB, 8_MiB, 64_KiB, 0, 0};
  layers.back() = {4_MiB, 8_MiB, 0, 0, 1_MiB};
  auto const model = describe_bytes(layers);
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  PlanOptions const options{.micro_batches_per_round = 4, .device_memory = 64_MiB};
  // The less is recomputed, the better.
  PlanForecast const forecast = [&](StagePlan const& plan) {
    return -static_cast<double>(plan.partition.backward.front().count);
  };
  auto const fused = [&](auto const& policy) {
    Planner const planner{
        RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, policy};
    auto const plan = planner.plan_stages(model, blocks, costs, options, forecast);
    CHECK(plan.memory.bytes <= options.device_memory);
    return plan.partition.backward.front().count;
  };
  struct Unyielding {
    [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
      return Partitioner{}.partition(problem);
    }
  };
  static_assert(!yields_to_forecast(Unyielding{}) && yields_to_forecast(Partitioner{}));
  CHECK(fused(Partitioner{}) > fused(Unyielding{}));
  // The host may have no room for the checkpoints of other stages.
  auto limited = options;
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  auto const own = planner.plan_stages(model, blocks, costs, limited).partition.backward.size();
  limited.host_memory = own;
  limited.host_bytes = [](StagePlan const& plan) { return plan.partition.backward.size(); };
  auto const chosen = planner.plan_stages(model, blocks, costs, limited, forecast);
  CHECK(limited.host_has_room(chosen));
}

namespace {

/// Ten layers, and room for some of them on a device.
struct TenLayers {
  ModelDescription model = describe(toy_model({.dense = 10}), {2, 3});
  ParameterBlocks blocks = form_blocks(model);
  CostModel costs{std::vector<LayerCost>(model.size(), {1e-3, 2e-3})};
  PlanOptions options{.micro_batches_per_round = 2,
                      .device_memory = 16 * model.layers[1].footprint.saved_bytes};
  Planner<RoundRobinSchedule, PriorityTransferEngine, LayerEventProtocol, Partitioner> planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
};

}  // namespace

TEST_CASE("plans that lose by their bound have no forecast, and others are as if there were none") {
  auto [model, blocks, costs, options, planner] = TenLayers();
  auto const seconds = [](StagePlan const& plan) {
    return 10 + static_cast<double>(plan.partition.size());
  };
  std::size_t forecasts = 0;
  std::size_t losers = 0;
  auto const counted = [&](StagePlan const& plan) {
    ++forecasts;
    losers += seconds(plan) > 1.05 * 15 ? 1 : 0;
    return seconds(plan);
  };
  options.seconds_to_beat = 15;
  auto const plain = planner.plan_stages(model, blocks, costs, options, counted);
  auto const all = std::exchange(forecasts, 0);
  REQUIRE(losers > 0);
  losers = 0;
  auto const bounded =
      planner.plan_stages(model, blocks, costs, options, PlanForecast(counted, seconds));
  CHECK(losers == 0);
  CHECK(forecasts < all);
  CHECK(bounded.partition == plain.partition);
  CHECK(bounded.memory.buffering == plain.memory.buffering);
}

TEST_CASE("a plan comes with its forecast, or with the bound by which it loses") {
  auto [model, blocks, costs, options, planner] = TenLayers();
  auto const least = [](StagePlan const& plan) {
    return 10 + static_cast<double>(plan.partition.size());
  };
  std::size_t forecasts = 0;
  auto const seconds = [&](StagePlan const& plan) {
    ++forecasts;
    return 2 * least(plan);
  };
  PlanForecast const forecast(seconds, least);
  auto const found = planner.find_stages(model, blocks, costs, options, forecast);
  CHECK(found.seconds == 2 * least(found.plan));
  CHECK(std::exchange(forecasts, 0) > 0);
  options.seconds_to_beat = 5;
  auto const loser = planner.find_stages(model, blocks, costs, options, forecast);
  CHECK(loser.seconds == least(loser.plan));
  CHECK(forecasts == 0);
  options.host_memory = 1;
  options.host_bytes = [](StagePlan const&) { return 2; };
  CHECK(planner.find_stages(model, blocks, costs, options, forecast).seconds == FoundPlan::unknown);
  CHECK(planner.find_stages(model, blocks, costs, options).seconds == 0);
}

TEST_CASE("a plan that the host has no room for makes no other one lose") {
  auto const model = describe(toy_model({.dense = 10}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  auto const has_room = [](StagePlan const& plan) { return plan.memory.buffering.parameters < 2; };
  PlanOptions const options{
      .micro_batches_per_round = 2,
      .device_memory = 16 * model.layers[1].footprint.saved_bytes,
      .host_memory = 1,
      .host_bytes = [&](StagePlan const& plan) { return has_room(plan) ? 1 : 2; }};
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  // Without room, a plan would be ten times as fast. Bounds know nothing of what is faster.
  auto const seconds = [&](StagePlan const& plan) {
    return (has_room(plan) ? 10.0 : 1.0) * (10 + static_cast<double>(plan.partition.size()));
  };
  auto const least = [&](StagePlan const& plan) {
    return has_room(plan) ? 5 * (30 - static_cast<double>(plan.partition.size())) : 0;
  };
  auto const unbounded = planner.plan_stages(model, blocks, costs, options, seconds);
  auto const bounded =
      planner.plan_stages(model, blocks, costs, options, PlanForecast(seconds, least));
  REQUIRE(has_room(bounded));
  CHECK(bounded.partition == unbounded.partition);
}

TEST_CASE("where rounds overlap, the forecast decides how long stages are") {
  auto const model = describe(toy_model({.dense = 10}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  PlanOptions const options{.micro_batches_per_round = 2,
                            .rounds = 3,
                            .device_memory = 64 * model.layers[1].footprint.saved_bytes,
                            .overlaps_rounds = true};
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  auto const longest = [](StagePlan const& plan) {
    std::size_t most = 0;
    for (auto const& range : std::span(plan.partition.backward).subspan(1)) {
      most = std::max(most, range.count);
    }
    return static_cast<double>(most);
  };
  for (double const wanted : {1.0, 2.0, 3.0}) {
    CAPTURE(wanted);
    PlanForecast const forecast = [&](StagePlan const& plan) {
      auto const fused = static_cast<double>(plan.partition.backward.front().count);
      return 10 + std::abs(longest(plan) - wanted) + std::abs(fused - 2);
    };
    auto const plan = planner.plan_stages(model, blocks, costs, options, forecast);
    CHECK(longest(plan) == wanted);
    CHECK(plan.partition.backward.front().count == 2);
  }
}

TEST_CASE("rounds overlap where the host has room for no other plan, however slow that is") {
  auto const model = describe(toy_model({.dense = 10}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  auto const overlaps = [](StagePlan const& plan) {
    return plan.train.front().working_set.overlaps_rounds();
  };
  PlanOptions options{.micro_batches_per_round = 2,
                      .rounds = 3,
                      .device_memory = 64 * model.layers[1].footprint.saved_bytes};
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  PlanForecast const forecast = [&](StagePlan const& plan) { return overlaps(plan) ? 20 : 10; };
  CHECK_FALSE(overlaps(planner.plan_stages(model, blocks, costs, options, forecast)));
  options.host_memory = 0;
  options.host_bytes = [&](StagePlan const& plan) -> Bytes { return overlaps(plan) ? 0 : 1; };
  CHECK(overlaps(planner.plan_stages(model, blocks, costs, options, forecast)));
  options.seconds_to_beat = 1;
  CHECK(overlaps(planner.plan_stages(model, blocks, costs, options, forecast)));
  PlanForecast const bounded(forecast, forecast);  // so slow that all lose
  CHECK(overlaps(planner.plan_stages(model, blocks, costs, options, bounded)));
}

TEST_CASE("overlapping rounds are not searched for where another plan is known to be faster") {
  auto const model = describe(toy_model({.dense = 10}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  PlanOptions options{.micro_batches_per_round = 2,
                      .rounds = 3,
                      .device_memory = 64 * model.layers[1].footprint.saved_bytes};
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  std::size_t overlapping = 0;
  PlanForecast const forecast = [&](StagePlan const& plan) {
    auto const overlaps = plan.train.front().working_set.overlaps_rounds();
    overlapping += overlaps ? 1 : 0;
    return overlaps ? 9 : 10;
  };
  auto const forecasts_with = [&](double seconds_to_beat) {
    options.seconds_to_beat = seconds_to_beat;
    overlapping = 0;
    auto const plan = planner.plan_stages(model, blocks, costs, options, forecast);
    return std::pair(overlapping, plan.train.front().working_set.overlaps_rounds());
  };
  auto const none = std::numeric_limits<double>::infinity();
  auto const [all, overlaps] = forecasts_with(none);
  CHECK(overlaps);
  CHECK(forecasts_with(9.1) == std::pair(all, true));
  auto const [few, still_overlaps] = forecasts_with(7);
  CHECK_FALSE(still_overlaps);
  CHECK(few <= 4);
  options.overlaps_rounds = true;
  CHECK(forecasts_with(7) == forecasts_with(none));
}

TEST_CASE("the stages of a policy that yields are among those that keep saves") {
  /// Cuts as nobody else does: the first two layers in one backward stage, the others each by
  /// itself.
  struct TwoThenOne {
    [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
      Partition partition;
      for (auto i = problem.costs.size(); i-- > 2;) {
        partition.forward.insert(partition.forward.begin(), {i - 1, 1});
        partition.backward.push_back({i, 1});
      }
      partition.forward.insert(partition.forward.begin(), {0, 1});
      partition.backward.push_back({0, 2});
      return partition;
    }
    [[nodiscard]] static constexpr bool yields_to_forecast() noexcept { return true; }
  };
  auto const model = describe(toy_model({.dense = 4}), {2, 3});
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), {1e-3, 2e-3}));
  PlanOptions const options{.micro_batches_per_round = 2,
                            .device_memory = 20 * model.layers[1].footprint.saved_bytes};
  auto const own =
      TwoThenOne{}.partition({.costs = costs.layers(), .devices = 1, .micro_batches_per_call = 2});
  auto const is_own = [&](StagePlan const& plan) { return plan.partition == own; };
  auto const keeps = [&](StagePlan const& plan) {
    Bytes kept = 0;
    for (std::size_t layer = 0; layer < model.size(); ++layer) {
      kept += plan.train.front().working_set.most_bytes(layer);
    }
    return kept > 0;
  };
  // Only together they are worth anything. A single stage would have nothing to keep.
  PlanForecast const forecast = [&](StagePlan const& plan) {
    auto const pays = is_own(plan) == keeps(plan) && plan.partition.size() > 1;
    return pays ? (is_own(plan) ? 1.0 : 2.0) : 3.0;
  };
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, TwoThenOne{}};
  auto const plan = planner.plan_stages(model, blocks, costs, options, forecast);
  CHECK(is_own(plan));
  CHECK(keeps(plan));
}

TEST_CASE("offloading changes nothing for the fused stage and its evaluation") {
  auto const model = describe(toy_model({.dense = 6}), {8, 8});
  auto const blocks = form_blocks(model);
  auto const planned = [&](std::size_t count) {
    return lay_out_stages(model,
                          blocks,
                          {{{0, 2}}, {{2, model.size() - 2}, {0, 2}}},
                          {},
                          spread_saves(model, count, 4));
  };
  auto const recomputes = planned(0);
  auto const offloads = planned(2);
  CHECK(offloads.evaluate.back().out_bytes == recomputes.evaluate.back().out_bytes);
  CHECK(offloads.train[1].in_bytes == recomputes.train[1].in_bytes);
  CHECK(offloads.train[1].scratch_bytes == recomputes.train[1].scratch_bytes);
  CHECK(offloads.train[0].save_bytes > 0);
  CHECK(offloads.train[0].kept.size() == 2);
  CHECK(offloads.evaluate.front().kept.size() == 1);  // what the next stage reads
}

TEST_CASE("stages that can be cut leave room for a layer that cannot") {
  std::vector<LayerBytes> layers(7, {1_MiB, 1_MiB, 1_KiB, 1_MiB, 0});
  layers.back() = {1_KiB, 1_KiB, 0, 0, 24_MiB};
  auto const model = describe_bytes(layers);
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  Partition single;
  for (std::size_t i = 0; i < model.size(); ++i) {
    single.backward.insert(single.backward.begin(), {i, 1});
    if (i + 1 < model.size()) {
      single.forward.push_back({i, 1});
    }
  }
  auto const least = lay_out_stages(model, blocks, single, {1, 1, 1}).memory.bytes;
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  PlanOptions options{.micro_batches_per_round = 2, .device_memory = least};
  CHECK(planner.plan_stages(model, blocks, costs, options).memory.bytes <= least);
  options.device_memory = least - 256;
  auto const error =
      error_of([&] { return planner.plan_stages(model, blocks, costs, options).memory.bytes; });
  CHECK(error.message().find(std::to_string(least) + " bytes") != std::string::npos);
}

}  // namespace planner_test
