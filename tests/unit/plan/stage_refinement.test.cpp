// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/stage_refinement.hpp>

#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/slot_simulation.hpp>
#include <roundpipe/plan/stage_plan.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

namespace stage_refinement_test {

using namespace roundpipe;

namespace {

/// An embedding, ten equal layers, and a head.
ModelDescription some_model() {
  std::vector<LayerBytes> layers(12, {1_MiB, 1_MiB, 64_KiB, 1_MiB, 256_KiB});
  layers.front() = {4_MiB, 4_MiB, 64_KiB, 0, 0};
  layers.back() = {4_MiB, 4_MiB, 0, 0, 1_MiB};
  return describe_bytes(layers);
}

/// One device runs all stages in turn.
std::vector<DeviceTurns> all_in_turn(Partition const& partition, bool /*overlaps*/) {
  DeviceTurns call;
  for (std::size_t k = 0; k < partition.size(); ++k) {
    call.push_back({k});
  }
  DeviceTurns evaluation;
  for (std::size_t k = 0; k <= partition.forward.size(); ++k) {
    evaluation.push_back({partition.size() + k});
  }
  return {call, evaluation};
}

detail::TurnFunction const in_turn = all_in_turn;

bool any_host(Partition const& /*partition*/) {
  return true;
}

bool none_loses(double /*least_s*/) {
  return false;
}

/// Stages of that model that keep checkpoints, with one entry of each ring.
struct Refined {
  explicit Refined(PlanOptions const& given) : options(given) {}

  ModelDescription model = some_model();
  ParameterBlocks blocks = form_blocks(model);
  CostModel costs{std::vector<LayerCost>(model.size(), LayerCost{1, 2})};
  detail::WorkingSetChoice choice{model, blocks, costs, {}};
  Buffering buffering{1, 1, 1};
  PlanOptions options;
  detail::StageRefinement refinement{choice, buffering, options, in_turn, 0};
};

}  // namespace

TEST_CASE("all stages of each partition fit together, whatever the host keeps") {
  auto const model = some_model();
  auto const blocks = form_blocks(model);
  CostModel const costs(
      std::vector<LayerCost>(model.size(), {.forward_s = 1, .backward_s = 2, .replay_s = {0.5}}));
  for (std::size_t const devices : {1, 2, 3}) {
    for (Bytes const budget : {28_MiB, 48_MiB, 80_MiB}) {
      for (auto const& set : {WorkingSet{}, spread_saves(model, 0, 4), spread_saves(model, 2, 4)}) {
        CAPTURE(devices);
        CAPTURE(budget);
        detail::WorkingSetChoice const choice(model, blocks, costs, set);
        Buffering const buffering{2, 1, 2, 2};
        PlanOptions const options{
            .devices = devices, .micro_batches_per_round = 4, .device_memory = budget};
        detail::StageRefinement const refinement(choice, buffering, options, in_turn, 0);
        std::vector<double> least_s;  // by layers of the fused stage, less one
        auto const found = refinement.partitions(any_host, [&](double seconds) {
          least_s.push_back(seconds);
          return false;
        });
        REQUIRE_FALSE(found.empty());
        std::set<std::size_t> fused;
        auto const one_by_one = set.checkpoints() == Checkpoints::layers;
        SlotSimulation simulation(choice.costs, devices, 4, {.recomputes_one_by_one = one_by_one});
        double before_s = 0;
        for (auto const& partition : found) {
          CHECK(covers(partition, model.size()));
          CHECK(partition.size() >= devices);
          auto const turns = in_turn(partition, false);
          auto const plan = lay_out_stages(model, blocks, partition, buffering, set, turns);
          CHECK(plan.memory.bytes <= budget);
          CHECK(fused.insert(partition.backward.front().count).second);
          auto const seconds = simulation.simulate(partition, 4).seconds;
          CHECK(seconds >= before_s * (1 - 1e-3));
          SlotSimulation least(
              choice.least,
              devices,
              4,
              {.recomputes_one_by_one = one_by_one, .replays_last_layers = !one_by_one});
          CHECK(least.simulate(partition, 4).seconds >=
                least_s.at(partition.backward.front().count - 1) * (1 - 1e-9));
          before_s = seconds;
        }
      }
    }
  }
}

TEST_CASE("partitions for which the host has no room leave their place to others") {
  auto const model = some_model();
  auto const blocks = form_blocks(model);
  CostModel const costs(std::vector<LayerCost>(model.size(), LayerCost{1, 2}));
  detail::WorkingSetChoice const choice(model, blocks, costs, spread_saves(model, 0, 4));
  Buffering const buffering{2, 1, 2, 2};
  PlanOptions const options{.micro_batches_per_round = 4, .device_memory = 48_MiB};
  detail::StageRefinement const refinement(choice, buffering, options, in_turn, 0);
  auto const best = refinement.partitions(any_host, none_loses).front();
  auto const is_other = [&](Partition const& p) { return p != best; };
  auto const others = refinement.partitions(is_other, none_loses);
  auto const of_equal_length = [&](Partition const& p) {
    return p.backward.front() == best.backward.front();
  };
  CHECK(std::find(others.begin(), others.end(), best) == others.end());
  CHECK(std::any_of(others.begin(), others.end(), of_equal_length));
}

TEST_CASE("a partition has a fused stage and others as long as told, or is none") {
  Refined const refined({.micro_batches_per_round = 4, .device_memory = 80_MiB});
  auto const& model = refined.model;
  auto const& refinement = refined.refinement;
  auto const found = refinement.partition(2, 3);
  REQUIRE(found);
  CHECK(covers(*found, model.size()));
  CHECK(found->backward.front().count == 2);
  for (auto const& range : std::span(found->backward).subspan(1)) {
    CHECK(range.count <= 3);
  }
  auto const none = static_cast<std::size_t>(-1);
  CHECK_FALSE(refinement.partition(0, 1));
  CHECK_FALSE(refinement.partition(2, 0));
  CHECK_FALSE(refinement.partition(2, none));
  CHECK_FALSE(refinement.partition(none, 2));
  CHECK_FALSE(refinement.partition(model.size(), 1));
}

TEST_CASE("where the first layer makes a stage of a length too large, others keep that length") {
  Refined const refined({.micro_batches_per_round = 4, .device_memory = 26_MiB});
  auto const found = refined.refinement.partition(3, 3);
  REQUIRE(found);
  CHECK(found->size() == 6);  // 7 where forward stages are a layer shorter
}

TEST_CASE("a budget that holds no layer beside the fused stage has no partition") {
  Refined const refined({.micro_batches_per_round = 4, .device_memory = 4_MiB});
  CHECK(refined.refinement.partitions(any_host, none_loses).empty());
}

TEST_CASE("no stages are looked for beside a fused stage that loses though no device waits") {
  Refined const refined(
      {.devices = 2, .micro_batches_per_round = 4, .rounds = 3, .device_memory = 80_MiB});
  auto const& model = refined.model;
  auto const& refinement = refined.refinement;
  auto const all = refinement.partitions(any_host, none_loses);
  // Six micro-batches a device: 3 s for each layer of the fused stage, 4 s for others, which run
  // forward once more.
  auto const least_s = [&](Partition const& partition) {
    auto const fused = static_cast<double>(partition.backward.front().count);
    return 6 * (4 * static_cast<double>(model.size()) - fused);
  };
  std::vector<double> asked;
  auto const most_s = least_s(all.front());
  auto const fast = refinement.partitions(any_host, [&](double seconds) {
    asked.push_back(seconds);
    return seconds > most_s;
  });
  CHECK(asked.size() == model.size() - 1);
  std::vector<Partition> expected;
  std::copy_if(all.begin(), all.end(), std::back_inserter(expected), [&](Partition const& p) {
    return least_s(p) <= most_s;
  });
  REQUIRE(expected.size() < all.size());
  CHECK(fast == expected);
  CHECK(std::find(asked.begin(), asked.end(), most_s) != asked.end());
}

}  // namespace stage_refinement_test
