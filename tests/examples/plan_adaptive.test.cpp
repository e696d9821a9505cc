// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the library chooses for a small transformer, its refusals, and its frontier.
#include <plan_pipeline/adaptive.hpp>
#include <plan_pipeline/adaptive_report.hpp>
#include <plan_pipeline/scaling.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/shapes.hpp>
#include <support/svg_reader.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace plan_adaptive_test {
namespace {

using namespace roundpipe;
using namespace plan_pipeline;
using test::contains;
using test::error_of;
using Space = LedgerLine::Space;

/// A link that carries a part of what layers save while they compute.
AdaptiveProblem small_problem() {
  return {.shape = {.name = "small",
                    .hidden = 1024,
                    .heads = 8,
                    .kv_heads = 4,
                    .head_dim = 128,
                    .intermediate = 4096,
                    .layers = 6,
                    .vocabulary = 8192},
          .hardware = {.device = test::rtx4090(),
                       .latency_seconds = 3e-6,
                       .source = "made up",
                       .sustained_flops_per_second = 60e12},
          .devices = 1,
          .batch = {4, 1024}};
}

Bytes held(AdaptivePlan const& plan, Space space) {
  return total_bytes(plan.plan.ledger, space);
}

/// Why nothing fits.
OverBudget refusal_of(AdaptiveProblem const& problem, Bytes device_memory) {
  try {
    (void)AdaptivePlanner(problem).plan(device_memory);
  } catch (OverBudget const& lack) {
    return lack;
  }
  FAIL("something fits");
  return {{}, {}, 0, {}};
}

std::vector<AdaptivePlan> const& small_frontier() {
  static auto const plans = frontier(AdaptivePlanner(small_problem()), [](AdaptivePlan const&) {});
  return plans;
}

}  // namespace

TEST_CASE("the planned transformers have their published numbers of parameters") {
  auto const parameters = [](char const* name) {
    auto problem = small_problem();
    problem.shape = model_shape(name);
    problem.batch = {1, 1024};
    return AdaptivePlanner(problem).plan(no_limit).plan.blocks.parameter_count();
  };
  CHECK(parameters("llama3.1-8b") == 8'030'261'248);
  CHECK(parameters("qwen3-1.7b") == 1'720'574'976);
}

TEST_CASE("a mixture of experts is refused: no layer of the library could run it") {
  auto problem = small_problem();
  problem.shape = model_shape("gpt-oss-20b");
  CHECK(error_of([&] { AdaptivePlanner const planner(problem); }).code() == Errc::unsupported);
}

TEST_CASE("a plan keeps both budgets by its own ledger") {
  auto problem = small_problem();
  for (auto const& plan : small_frontier()) {
    CHECK(held(plan, Space::device) <= plan.choice.options.device_memory);
  }
  auto const& roomy = small_frontier()[2];
  auto const budget = roomy.choice.options.device_memory;
  problem.host_memory = 1_GiB;
  problem.host_memory = refusal_of(problem, budget).least();
  CHECK(held(roomy, Space::host) > problem.host_memory);  // without that budget
  auto const modest = AdaptivePlanner(problem).plan(budget);
  CHECK(held(modest, Space::device) <= budget);
  CHECK(held(modest, Space::host) <= problem.host_memory);
}

TEST_CASE("declared states take less of the host") {
  auto problem = small_problem();
  auto const fp32 = AdaptivePlanner(problem).plan(no_limit);
  problem.states = StateType::declared;
  auto const declared = AdaptivePlanner(problem).plan(no_limit);
  auto const parameters = fp32.plan.blocks.parameter_count();
  // fp32 weights and two states of 4 bytes; two states of 2.
  CHECK(held(fp32, Space::host) - held(declared, Space::host) ==
        doctest::Approx(8.0 * double(parameters)).epsilon(0.001));
}

TEST_CASE("MFU counts the model's FLOPs, without recomputation, against the peak") {
  auto problem = small_problem();
  AdaptivePlanner const planner(problem);
  auto const plan = planner.plan(no_limit);
  auto const parameters = static_cast<double>(plan.plan.blocks.parameter_count());
  auto const sequence = 6 * 1024 * (parameters + 1024.0 * 6 * 8 * 128);
  CHECK(planner.mfu(plan) == doctest::Approx(4 * sequence / plan.seconds / 330e12));
  CHECK(planner.tokens_per_second(plan) == doctest::Approx(4 * 1024 / plan.seconds));
  problem.hardware.sustained_flops_per_second = 0;  // unknown: the peak
  CHECK(AdaptivePlanner(problem).plan(no_limit).seconds < plan.seconds);
}

TEST_CASE("the least device memory does, and two MiB less do not") {
  AdaptivePlanner const planner(small_problem());
  auto const least = planner.least_device_memory();
  CHECK_NOTHROW((void)planner.plan(least));
  auto const lack = refusal_of(small_problem(), least - 2_MiB);
  CHECK(lack.space() == Space::device);
  CHECK(lack.least() == least);
  CHECK(total_bytes(lack.ledger(), Space::device) <= least);
  CHECK(contains(lack.message(), std::to_string(least) + " bytes"));
  CHECK(contains(lack.message(), "scratch of stages "));
}

TEST_CASE("the host memory that a refusal names does") {
  auto problem = small_problem();
  auto const device_memory = small_frontier()[1].choice.options.device_memory;
  problem.host_memory = 1_GiB;
  auto const lack = refusal_of(problem, device_memory);
  CHECK(lack.space() == Space::host);
  CHECK(contains(lack.message(), "the host budget of 1.00 GiB is too small"));
  CHECK(contains(lack.message(), "master copies "));
  problem.host_memory = lack.least();
  CHECK_NOTHROW((void)AdaptivePlanner(problem).plan(device_memory));
}

TEST_CASE("the frontier begins at the least budget, and more memory is never slower by a percent") {
  AdaptivePlanner const planner(small_problem());
  auto const& plans = small_frontier();
  REQUIRE(plans.size() > 3);
  CHECK(plans.front().choice.options.device_memory ==
        align_up(planner.least_device_memory(), 1_MiB));
  CHECK(plans.back().plan.stages.partition.size() == 1);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    CHECK(plans[i].choice.options.device_memory > plans[i - 1].choice.options.device_memory);
    CHECK(planner.tokens_per_second(plans[i]) > 0.99 * planner.tokens_per_second(plans[i - 1]));
  }
  CHECK(planner.tokens_per_second(plans.back()) > 1.05 * planner.tokens_per_second(plans.front()));
}

TEST_CASE("every decision stands in a line with its reason") {
  AdaptivePlanner const planner(small_problem());
  bool keeps = false;
  for (auto const& plan : small_frontier()) {
    auto const text = adaptive_text(planner, plan);
    CAPTURE(text);
    for (auto const* decision :
         {"micro-batch", "rounds", "stages", "checkpoints", "saves", "buffering"}) {
      auto const at = text.find("\n  " + std::string(decision) + " ");
      REQUIRE(at != std::string::npos);
      CHECK(contains(text.substr(at + 1, text.find('\n', at + 1) - at), "; "));
    }
    CHECK(contains(text, "ledger of each device: " + format_bytes(held(plan, Space::device))));
    CHECK(contains(text, "ledger of the host: " + format_bytes(held(plan, Space::host))));
    keeps = keeps || contains(text, " the host keeps ");
  }
  CHECK(keeps);  // save levels mean something
  auto const table = frontier_text(planner, small_frontier());
  CHECK(std::count(table.begin(), table.end(), '\n') ==
        static_cast<std::ptrdiff_t>(small_frontier().size() + 1));
}

TEST_CASE("the frontier's picture is well-formed, and has a point and a label for each plan") {
  std::ostringstream out;
  AdaptivePlanner const planner(small_problem());
  write_frontier(out, planner, small_frontier());
  test::SvgReader const picture(out.str());
  auto const width = picture.elements.front().number("width");
  auto const height = picture.elements.front().number("height");
  std::size_t points = 0;
  for (auto const& box : picture.named("rect")) {
    points += box.attributes.at("width") == "7" && box.attributes.at("height") == "7" ? 1 : 0;
    if (box.attributes.contains("x")) {
      CHECK(box.number("x") >= 0);
      CHECK(box.number("x") + box.number("width") <= width);
      CHECK(box.number("y") + box.number("height") <= height);
    }
  }
  CHECK(points == small_frontier().size());
  std::set<std::string> texts;
  for (auto const& text : picture.named("text")) {
    texts.insert(text.text);
  }
  CHECK(texts.contains("tokens/s, by forecast"));
  CHECK(texts.contains("device memory, GiB as the driver counts"));
  for (auto const& plan : small_frontier()) {
    CHECK(texts.contains(std::to_string(std::llround(planner.tokens_per_second(plan)))));
  }
}

TEST_CASE("hosts scale as far as their network carries gradients and weights") {
  auto problem = small_problem();
  problem.batch.rows = 2;
  AdaptivePlanner const planner(problem);
  auto const plan = planner.plan(no_limit);
  auto const scaling = scaling_of(planner, plan, {{1, 4, 64}, {1, 1e6}, 1e-6});
  CHECK(scaling.by_hosts[0] == std::vector<double>{1, 1});
  for (std::size_t h = 1; h < 3; ++h) {
    CHECK(scaling.by_hosts[h][1] > Scaling::hidden);
    // All else hides behind a slow network: 2 bytes of each parameter as gradient, and as weight.
    auto const hosts = static_cast<double>(scaling.options.hosts[h]);
    auto const bytes = 4.0 * (hosts - 1) / hosts * double(plan.plan.blocks.parameter_count());
    auto const alone_s = planner.seconds_on_hosts(
        plan, static_cast<std::size_t>(2 / plan.choice.chosen.cut.rows), 1, {});
    CHECK(alone_s / scaling.by_hosts[h][0] == doctest::Approx(bytes / (1e9 / 8)).epsilon(0.02));
  }
  CHECK(scaling.hides_from[0] == std::nullopt);
  CHECK(scaling.hides_from[1] == scaling.batches.front());
  CHECK(scaling.by_batch.back()[0] > scaling.by_batch.front()[0]);

  auto const text = scaling_text(scaling);
  CHECK(contains(text, "1 Gbit/s hide with none of these batches"));
  CHECK(contains(text, "1e+06 Gbit/s hide from "));
  std::ostringstream out;
  write_scaling(out, planner, scaling);
  test::SvgReader const picture(out.str());
  CHECK(picture.named("polyline").size() == 2);
}

}  // namespace plan_adaptive_test
