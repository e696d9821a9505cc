// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The code and the tables of docs/05_partitioner.md; docs_are_tested.cmake looks for the code here.

#include <roundpipe/roundpipe.hpp>
#include <support/bubble_study.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace roundpipe;

/// The last layer is the fused stage; all other stages have so many layers.
struct HeadAlone {
  std::size_t layers_a_stage = 2;

  Partition partition(PartitionProblem const& problem) const {
    auto const head = problem.costs.size() - 1;
    Partition stages;
    stages.backward.push_back({head, 1});
    for (auto end = head; end > 0; end -= stages.backward.back().count) {
      auto const count = std::min(layers_a_stage, end);
      stages.backward.push_back({end - count, count});
    }
    stages.forward.assign(stages.backward.rbegin(), stages.backward.rend() - 1);
    if (!fits(problem, stages)) {
      throw Error(Errc::over_budget, "stages with the head alone do not fit the budget");
    }
    return stages;
  }
};

static_assert(PartitionPolicy<HeadAlone>);

/// The cells of the page's rows that begin with \p model: one row for each table.
std::vector<std::vector<std::string>> rows_of(std::string const& model) {
  auto const root = std::filesystem::path(__FILE__).parent_path() / "../../..";
  std::ifstream page(root / "docs" / "05_partitioner.md");
  REQUIRE(page.is_open());
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| " + model + " |")) {
      std::vector<std::string> cells;
      std::istringstream text(line.substr(2));
      for (std::string cell; std::getline(text, cell, '|');) {
        cells.push_back(cell);
      }
      rows.push_back(cells);
    }
  }
  return rows;
}

/// Whether \p cell, "milliseconds, percent %", agrees with the result to all digits that it has.
void check_cell(std::string const& cell, SimulatedCall const& call, double ms, double points) {
  double milliseconds = 0;
  double percent = 0;
  CAPTURE(cell);
  REQUIRE(std::sscanf(cell.c_str(), "%lf, %lf", &milliseconds, &percent) == 2);
  CHECK(std::abs(call.seconds - milliseconds) < ms);  // the study's costs are in milliseconds
  CHECK(std::abs(100 * call.bubble - percent) < points);
  std::printf(" %.1f, %.2f %% |", call.seconds, 100 * call.bubble);
}
void check_exact(std::string const& cell, SimulatedCall const& call) {
  check_cell(cell, call, 0.051, 0.0051);
}
/// The search is local: a compiler that rounds differently may lead it another way.
void check_searched(std::string const& cell, SimulatedCall const& call) {
  check_cell(cell, call, 0.005 * call.seconds, 0.4);
}

}  // namespace

TEST_CASE("the page's code plans by the bound, within memory, and by simulation") {
  std::vector<LayerCost> costs(28, {.forward_s = 7.429e-3, .backward_s = 15.831e-3});
  costs.push_back({.forward_s = 22.0655e-3, .backward_s = 43.707e-3});  // the head
  PartitionProblem problem{.costs = costs, .devices = 8, .micro_batches_per_call = 16};
  auto const stages = Partitioner{}.partition(problem);
  std::printf("%zu stages, the slowest takes %.1f ms\n",
              stages.size(),
              1e3 * slowest_stage_seconds(costs, stages));
  CHECK(stages.size() == 15);
  CHECK(slowest_stage_seconds(costs, stages) == doctest::Approx(69.8e-3).epsilon(1e-3));

  std::vector<LayerBytes> const bytes(29,
                                      {.parameter_bytes = 96_MiB,
                                       .gradient_bytes = 96_MiB,
                                       .boundary_bytes = 32_MiB,
                                       .saved_bytes = 400_MiB,
                                       .workspace_bytes = 200_MiB});
  problem.fits = fits_within(StageMemory(bytes), 2_GiB);
  auto const small_stages = Partitioner{}.partition(problem);
  CHECK(small_stages.size() > stages.size());
  auto const refusal =
      test::error_of([&] { (void)fits_within(StageMemory(bytes), 1_GiB); }).message();
  CHECK(refusal ==
        "no partition fits 1073741824 bytes (1.00 GiB) of device memory: layer 0 alone needs "
        "1166016512 bytes (1.09 GiB) as a backward stage; the least that would do is 1300234240 "
        "bytes (1.21 GiB)");

  SlotSimulationOptions const one_call{.asynchronous = false, .communication_s = 1.6e-3};
  problem.fits = {};
  auto const found = SimulatedPartitioner(one_call).search(problem);
  std::printf("rounds of %zu, %zu stages, %.0f ms, %.1f %% bubble\n",
              found.micro_batches_per_round,
              found.partition.size(),
              1e3 * found.call.seconds,
              100 * found.call.bubble);
  CHECK(found.micro_batches_per_round == 16);
  CHECK(found.call.seconds == doctest::Approx(2.135).epsilon(0.005));

  Timeline timeline;
  for (std::size_t layer = 0; layer < problem.costs.size(); ++layer) {
    TimelineEntry entry;  // twice as slow as planned
    entry.layer = LayerId(layer);
    entry.kind = ActionKind::backward;
    entry.end_s = 2 * problem.costs[layer].backward_s;
    timeline.entries.push_back(entry);
  }
  problem.costs = fit_costs(problem.costs, timeline);
  auto const better = Partitioner{}.partition(problem);
  auto const is_worth_it = objective(problem, better) < 0.97 * objective(problem, stages);
  CHECK(is_worth_it);
}

TEST_CASE("a pipeline plans by simulation") {
  auto const model = test::toy_model({});
  HostBackend backend{{.devices = 2}};
  Pipeline pipeline{
      model,
      Sgd{},
      backend,
      PipelineOptions{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 2},
      Policies{.partitioner = SimulatedPartitioner{}}};
  CHECK(covers(pipeline.plan().stages.partition, model.layer_count()));
}

TEST_CASE("a user's own policy cuts the stages, within the budget, and changes no weights") {
  auto const model = test::toy_model({.dense = 6});
  PipelineOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 2};
  auto const layers = model.layer_count();
  HostBackend backend{{.devices = 2}};
  Pipeline usual{model, Sgd{}, backend, options};

  Pipeline pipeline{model, Sgd{}, backend, options, Policies{.partitioner = HeadAlone{}}};

  auto const& stages = pipeline.plan().stages.partition;
  CHECK(covers(stages, layers));
  CHECK(stages.backward.front() == LayerRange{layers - 1, 1});
  CHECK(stages.forward.back() == LayerRange{layers - 3, 2});

  test::ToyData const data(2, {2, 3}, 1);
  for (int step = 0; step < 3; ++step) {
    CHECK(pipeline.forward_backward(data.batch()) == usual.forward_backward(data.batch()));
    pipeline.step();
    usual.step();
  }
  CHECK(weights_digest(pipeline) == weights_digest(usual));

  PartitionProblem problem{.costs = std::vector<LayerCost>(4)};
  problem.fits = [](StageDirection, LayerRange range) { return range.count < 2; };
  CHECK(covers(HeadAlone{1}.partition(problem), 4));
  auto const refused = [&] { (void)HeadAlone{}.partition(problem); };
  CHECK(test::error_of(refused).code() == Errc::over_budget);
}

TEST_CASE("the page's tables agree with the results") {
  auto const study = test::read_test_data("bubbles.json").at("models");
  for (auto const* name :
       {"qwen3-1.7b", "llama3.1-8b", "qwen3-32b", "gpt-oss-20b", "qwen3-235b-a22b"}) {
    CAPTURE(name);
    auto const rows = rows_of(name);
    REQUIRE(rows.size() == 2);
    auto const model = test::studied_model(name);  // in milliseconds
    PartitionProblem const problem{
        .costs = model.costs, .devices = 8, .micro_batches_per_call = 16};
    for (auto const asynchronous : {false, true}) {
      auto const& cells = rows[asynchronous ? 1 : 0];
      REQUIRE(cells.size() == (asynchronous ? 5 : 6));
      std::printf("| %s |", name);
      SlotSimulationOptions options{.asynchronous = asynchronous,
                                    .communication_s = model.communication};
      SlotSimulation simulation(problem.costs, 8, 16, options);
      check_exact(cells[1], simulation.simulate(Partitioner{}.partition(problem), 8));
      if (study.contains(name)) {
        detail::StageSizes const sizes{
            study.at(name).at("forward_stages").get<std::vector<std::size_t>>(),
            study.at(name).at("backward_stages").get<std::vector<std::size_t>>()};
        auto const partition = sizes.partition(model.costs.size());
        check_exact(cells[2], simulation.simulate(partition, 8));
      } else {
        std::printf(" |");
      }
      auto const found = SimulatedPartitioner(options).search(problem);
      check_searched(cells[3], found.call);
      if (asynchronous) {
        options.posts_after_losses = false;
        check_searched(cells[4], SimulatedPartitioner(options).search(problem).call);
        std::printf("\n");
      } else {
        std::printf(" %zu | %zu |\n", found.micro_batches_per_round, found.partition.size());
        CHECK(std::stoul(cells[4]) == found.micro_batches_per_round);
      }
    }
  }
}
