// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <budget_sweep/options.hpp>
#include <budget_sweep/report.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <train_throughput/plan_shares.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace budget_sweep_test {
namespace {

using namespace budget_sweep;
using namespace roundpipe::literals;
using roundpipe::Error;

Options parse(std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "budget_sweep");
  return parse_options(static_cast<int>(arguments.size()), arguments.data()).value();
}

auto tiny_config() {
  return roundpipe::nn::TransformerConfig{.vocabulary = 64, .hidden = 32, .heads = 2}.resolved();
}

/// A run of 16 sequences in micro-batches of 4, within its budget.
Run run_of(Plan plan, double seconds) {
  Run run;
  run.plan = plan;
  run.options.device_memory = 2_GiB;
  run.options.batch = 16;
  run.options.micro_batches_per_round = 4;
  run.options.rounds = 1;
  auto& outcome = run.outcome.emplace();
  outcome.iterations_s = {seconds};
  outcome.device_busy = {1};
  outcome.device_memory = {{2_GiB, 1_GiB}};
  outcome.device_arena_bytes = outcome.device_ledger_bytes = 1_GiB;
  return run;
}

TEST_CASE("budgets are a list, in which a budget may be unlimited") {
  auto const o = parse({"--device-memory", "8GiB,1.5GiB,unlimited"});
  CHECK(o.budgets == std::vector<Bytes>{8_GiB, 1536_MiB, 0});
  CHECK(o.training.host_memory == 0);
  CHECK(!parse({}).budgets.empty());
  CHECK(parse({"--cost-file", "costs"}).training.cost_file == "costs");
  CHECK_THROWS_AS(parse({"--device-memory", "8GiB,lots"}), Error);
  CHECK_THROWS_AS(parse({"--device-memory", "0"}), Error);
  CHECK_THROWS_AS(parse({"--batch", "0"}), Error);
}

TEST_CASE(
    "more memory than the budget is a fault, and so is an arena that differs from the ledger") {
  auto run = run_of(Plan::chosen, 1);
  CHECK(faults_of(run).empty());
  run.outcome->device_memory.push_back({2_GiB + 1, 1_GiB});
  CHECK(faults_of(run).size() == 1);
  run.outcome->device_ledger_bytes -= 1;
  CHECK(faults_of(run).size() == 2);
  run.options.device_memory = 0;  // unlimited
  CHECK(faults_of(run).size() == 1);
  run.outcome.reset();
  CHECK(faults_of(run).empty());
}

TEST_CASE("ratios compare the chosen plan with the others of its budget") {
  BudgetRuns runs{run_of(Plan::chosen, 2), run_of(Plan::recomputation, 3)};
  auto const config = tiny_config();
  CHECK(ratio_to(runs, Plan::recomputation, config).value() == doctest::Approx(1.5));
  CHECK(!ratio_to(runs, Plan::offloading, config));
  runs.push_back({Plan::offloading, {}, {}, "no room"});
  CHECK(!ratio_to(runs, Plan::offloading, config));
  runs.push_back(run_of(Plan::chosen, 4));
  CHECK(ratio_to(runs, Plan::recomputation, config).value() == doctest::Approx(1));
  runs.front().outcome.reset();
  CHECK(ratio_to(runs, Plan::recomputation, config).value() == doctest::Approx(0.75));
  runs.back().outcome.reset();
  CHECK(!ratio_to(runs, Plan::recomputation, config));
}

TEST_CASE("a run's JSON has its plan and its ratios, a refusal's has the reason") {
  BudgetRuns runs{run_of(Plan::chosen, 2), run_of(Plan::recomputation, 3)};
  runs.push_back({Plan::offloading, runs.front().options, {}, "no room"});
  auto const config = tiny_config();
  auto const chosen = to_json(runs, 0, config);
  CHECK(chosen.at("budget") == "2.00 GiB");
  CHECK(chosen.at("plan") == "chosen");
  CHECK(chosen.at("ratio_to_recomputation").get<double>() == doctest::Approx(1.5));
  CHECK(chosen.at("tokens_per_second").get<double>() == doctest::Approx(16 * 2048 / 2.0));
  CHECK(chosen.at("faults").empty());
  CHECK(!chosen.contains("ratio_to_offloading"));
  CHECK(!to_json(runs, 1, config).contains("ratio_to_recomputation"));
  CHECK(to_json(runs, 2, config).at("refusal") == "no room");
}

TEST_CASE("the table has a line for each run, and then the refusals and faults") {
  std::vector<BudgetRuns> budgets{{run_of(Plan::chosen, 2), run_of(Plan::recomputation, 3)}};
  budgets.front().back().outcome->device_ledger_bytes = 5;
  budgets.push_back({{Plan::chosen, budgets.front().front().options, {}, "too small"}});
  std::ostringstream out;
  print(out, budgets, tiny_config());
  std::vector<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("budget"));
  CHECK(lines[1].find("1.500") != std::string::npos);
  CHECK(lines[2].find("recomputation") != std::string::npos);
  CHECK(lines[3].find("the ledger's lines sum to 5 bytes") != std::string::npos);
  CHECK(lines[4] == "2.00 GiB, chosen: too small");
}

TEST_CASE("shares of a plan count what is recomputed, and what is kept instead") {
  roundpipe::ModelDescription model;
  for (bool const is_loss : {false, false, false, true}) {
    roundpipe::LayerFacts layer;
    layer.work = {10, 20, {8, 4}};
    layer.footprint.saved_bytes = 100;
    layer.save_levels = {0, 50, 100};
    layer.is_loss = is_loss;
    model.layers.push_back(layer);
  }
  // Layers 2 and 3 are fused: the host keeps nothing of them.
  roundpipe::Partition const partition{{{0, 2}}, {{2, 2}, {0, 2}}};
  using train_throughput::shares_of;

  auto const stages = shares_of(model, partition, {}, 2, 1);
  CHECK(stages.kept_bytes == 0);
  // Each micro-batch: four forwards and backwards; layer 0 once more, layer 1 without its output.
  CHECK(stages.recomputed_flops == doctest::Approx(18.0 / (4 * 30 + 18)));

  auto const layers =
      shares_of(model, partition, roundpipe::WorkingSet(roundpipe::Checkpoints::layers), 2, 1);
  CHECK(layers.recomputed_flops == doctest::Approx(16.0 / (4 * 30 + 16)));

  // All of layer 0's first micro-batch, half of layer 1's second.
  auto const kept =
      shares_of(model, partition, roundpipe::keep_levels(model, {{2, 0}, {0, 1}}, 2), 2, 1);
  CHECK(kept.kept_bytes == doctest::Approx(150.0 / 400));
  CHECK(kept.recomputed_flops == doctest::Approx(20.0 / (2 * 4 * 30 + 20)));

  auto const fused = shares_of(model, {{}, {{0, 4}}}, {}, 2, 1);
  CHECK(fused.recomputed_flops == 0);
  CHECK(fused.kept_bytes == 0);
}

}  // namespace
}  // namespace budget_sweep_test
