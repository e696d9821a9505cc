// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Plans and simulations of problems with known answers.
#include <plan_pipeline/options.hpp>
#include <plan_pipeline/planning.hpp>
#include <plan_pipeline/problem.hpp>
#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <support/bubble_study.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace plan_pipeline_test {
namespace {

using namespace roundpipe;
using plan_pipeline::Options;
using plan_pipeline::Outcome;
using plan_pipeline::plan_schedule;
using plan_pipeline::Problem;

std::vector<std::string> const studied_models{
    "qwen3-1.7b", "llama3.1-8b", "gpt-oss-20b", "qwen3-32b", "qwen3-235b-a22b"};

Problem costs_of(std::string const& model) {
  auto const data = std::filesystem::path(__FILE__).parent_path().parent_path() / "data";
  return plan_pipeline::read_costs(data / ("costs_" + model + ".json"));
}

/// The study's devices and micro-batches.
Options study_options(test::Study const& study) {
  Options o;
  o.devices = study.devices;
  o.micro_batches_per_call = study.micro_batches_per_call;
  return o;
}

std::vector<std::size_t> counts_of(std::vector<LayerRange> const& stages) {
  std::vector<std::size_t> counts;
  for (auto const& stage : stages) {
    counts.push_back(stage.count);
  }
  return counts;
}

/// \p layers equal layers, of seconds.
Problem equal_layers(std::size_t layers, double forward_s, double backward_s) {
  Problem problem;
  problem.costs.assign(layers, {forward_s, backward_s, 0.0});
  problem.bytes.assign(layers, {});
  return problem;
}

Problem read_text(std::string const& json) {
  test::TemporaryFolder const folder;
  std::ofstream(folder.path / "costs.json") << json;
  return plan_pipeline::read_costs(folder.path / "costs.json");
}

/// A layer's line in a file of costs, \p count times.
std::string layers_text(std::string const& layer, std::size_t count) {
  std::string text = "\"layers\": [";
  for (std::size_t i = 0; i < count; ++i) {
    text += (i > 0 ? ", {" : "{") + layer + "}";
  }
  return text + "]";
}

}  // namespace

TEST_CASE("the study's makespan and bubble follow from its stages") {
  auto const study = test::bubble_study();
  REQUIRE(study.models.size() == 3);
  for (auto const& [name, studied] : study.models) {
    CAPTURE(name);
    auto o = study_options(study);
    o.micro_batches_per_round = study.micro_batches_per_round;
    o.forward_stages = counts_of(studied.partition.forward);
    o.backward_stages = counts_of(studied.partition.backward);
    auto const outcome = plan_schedule("roundpipe", costs_of(name), o);
    CHECK(std::abs(1e3 * outcome.bubbles.makespan_s - studied.makespan) < 0.001);  // ms
    auto const percent = studied.percent.at("RoundPipe, synchronous");
    CHECK(std::abs(100 * outcome.bubbles.ratio() - percent) < 0.01);  // points
  }
}

TEST_CASE("bubbles of schedules that bind stages are the study's or smaller") {
  auto const study = test::bubble_study();
  std::map<std::string, std::string> const titles{{"gpipe", "GPipe"},
                                                  {"1f1b", "1F1B"},
                                                  {"interleaved-1f1b", "interleaved 1F1B"},
                                                  {"looped-bfs", "looped BFS"}};
  for (auto const& [model, studied] : study.models) {
    auto const problem = costs_of(model);
    for (auto const& [name, title] : titles) {
      CAPTURE(model);
      CAPTURE(name);
      auto const outcome = plan_schedule(name, problem, study_options(study));
      CHECK(100 * outcome.bubbles.ratio() <= studied.percent.at(title) + 0.05);
      CHECK(100 * outcome.bubbles.ratio() > 1);
    }
  }
}

TEST_CASE("stages chosen by simulation are no slower than the bound's and the study's") {
  auto const study = test::bubble_study();
  for (auto const& model : studied_models) {
    CAPTURE(model);
    auto const problem = costs_of(model);
    auto o = study_options(study);
    auto const bound_s = plan_schedule("roundpipe", problem, o).bubbles.makespan_s;
    o.partition_by = "simulation";
    auto const simulated_s = plan_schedule("roundpipe", problem, o).bubbles.makespan_s;
    CHECK(simulated_s <= bound_s * (1 + 1e-9));
    if (auto const studied = study.models.find(model); studied != study.models.end()) {
      CHECK(1e3 * simulated_s <= studied->second.makespan + 0.001);
    }
  }
}

TEST_CASE("asynchronous, with stages chosen by simulation, 98.5% of the time is work") {
  auto const study = test::bubble_study();
  for (auto const& model : studied_models) {
    CAPTURE(model);
    auto o = study_options(study);
    o.partition_by = "simulation";
    o.asynchronous = true;
    auto const outcome = plan_schedule("roundpipe", costs_of(model), o);
    CHECK(outcome.bubbles.iterations == 12);
    CHECK(100 * outcome.bubbles.ratio() < 1.5);
  }
}

TEST_CASE("the textbook's case takes the textbook's time") {
  // 4 stages of 1 forward and 2 backward, nothing recomputed; 8 micro-batches.
  auto const problem = equal_layers(4, 1, 2);
  Options const o;
  auto const check = [&](std::string const& name, double makespan_s, double ratio) {
    CAPTURE(name);
    auto const outcome = plan_schedule(name, problem, o);
    CHECK(outcome.bubbles.makespan_s == doctest::Approx(makespan_s));
    CHECK(outcome.bubbles.ratio() == doctest::Approx(ratio));
    return outcome.peak_in_flight_forwards;
  };
  check("naive", 96, 0.75);
  CHECK(check("gpipe", 33, 3.0 / 11) == std::vector<std::size_t>{8, 8, 8, 8});
  CHECK(check("1f1b", 33, 3.0 / 11) == std::vector<std::size_t>{4, 3, 2, 1});
}

TEST_CASE("with equal stages the bubbles follow their formulas") {
  for (std::size_t const devices : {2, 4}) {
    for (std::size_t const micro_batches : {4, 8, 16}) {
      for (std::size_t const loops : {1, 2, 3}) {
        CAPTURE(devices);
        CAPTURE(micro_batches);
        CAPTURE(loops);
        Options o;
        o.devices = devices;
        o.micro_batches_per_call = micro_batches;
        o.stages_per_device = loops;
        auto const p = static_cast<double>(devices);
        auto const m = static_cast<double>(micro_batches);
        auto const v = static_cast<double>(loops);
        auto const problem = equal_layers(loops * devices, 1, 2);
        auto const ratio = [&](std::string const& name) {
          return plan_schedule(name, problem, o).bubbles.ratio();
        };
        CHECK(ratio("gpipe") == doctest::Approx((p - 1) / (m + p - 1)));
        CHECK(ratio("1f1b") == doctest::Approx((p - 1) / (m + p - 1)));
        CHECK(ratio("interleaved-1f1b") == doctest::Approx((p - 1) / (v * m + p - 1)));
      }
    }
  }
}

TEST_CASE("the earliest finish beats round robin on devices of different speeds alone") {
  auto const problem = costs_of("qwen3-1.7b");
  for (std::size_t const micro_batches : {8, 16}) {
    Options o;
    o.micro_batches_per_call = micro_batches;
    auto const seconds = [&](std::string const& name) {
      return plan_schedule(name, problem, o).bubbles.makespan_s;
    };
    o.device_speeds = {1, 1, 0.5, 0.5};
    CHECK(seconds("earliest-finish") < 0.99 * seconds("roundpipe"));
    auto const slow_s = seconds("roundpipe");
    o.device_speeds = {1, 1, 1, 1};
    CHECK(seconds("earliest-finish") == seconds("roundpipe"));
    CHECK(seconds("roundpipe") < slow_s);
  }
}

TEST_CASE("four devices behind one switch are slower than behind four, when transfers matter") {
  auto const iteration_s = [](std::string const& groups, double parameter_bytes) {
    auto problem =
        read_text(R"({"link": {"up_gbps": 10, "down_gbps": 10, "latency_us": 3, "groups": )" +
                  groups + "}, " + layers_text(R"("forward_ms": 5, "backward_ms": 10)", 12) + "}");
    for (auto& layer : problem.bytes) {
      layer.parameter_bytes = static_cast<Bytes>(parameter_bytes);
      layer.gradient_bytes = layer.parameter_bytes;
      layer.boundary_bytes = layer.parameter_bytes / 25;
    }
    return plan_schedule("roundpipe", problem, Options{}).bubbles.iteration_s;
  };
  std::string const one = "[[0, 1, 2, 3]]";
  std::string const four = "[[0], [1], [2], [3]]";
  CHECK(iteration_s(one, 4e8) > 1.1 * iteration_s(four, 4e8));
  CHECK(iteration_s("[[0, 1], [2, 3]]", 4e8) > 1.01 * iteration_s(four, 4e8));
  CHECK(iteration_s(one, 4e8) > 1.01 * iteration_s("[[0, 1], [2, 3]]", 4e8));
  CHECK(iteration_s(one, 1e6) < 1.01 * iteration_s(four, 1e6));  // links do not matter
}

TEST_CASE("all idle time of every schedule has a cause") {
  auto const problem = read_text(
      R"({"link": {"up_gbps": 20, "down_gbps": 20, "latency_us": 3, "both_ways_factor": 0.8,
          "groups": [[0, 1], [2, 3]], "root_gbps": 30}, "dispatch_us": 20, )" +
      layers_text(R"("forward_ms": 5, "backward_ms": 10, "optimizer_ms": 3,
          "parameter_bytes": 1e8, "boundary_bytes": 16e6)",
                  12) +
      "}");
  for (auto const& name : plan_pipeline::known_schedules()) {
    for (bool const asynchronous : {false, true}) {
      for (std::size_t const iterations : {1, 2, 5}) {
        CAPTURE(name);
        CAPTURE(asynchronous);
        CAPTURE(iterations);
        Options o;
        o.asynchronous = asynchronous;
        o.iterations = iterations;
        auto const outcome = plan_schedule(name, problem, o);
        auto const& result = outcome.bubbles;
        CHECK(result.iterations == iterations);
        // Busy time does not depend on when tasks run.
        auto const n = static_cast<double>(iterations);
        auto const counted = iterations > 2 ? n - 2 : n;
        auto const& last = outcome.partition.backward.front();
        auto const runs_forward_once =
            outcome.shape.fused ? 12.0 - static_cast<double>(last.count) : 12.0;
        auto const busy_s = 8 * counted * (12 * 0.015 + runs_forward_once * 0.005);
        CHECK(result.busy_s == doctest::Approx(busy_s));
        double window_s = 0;  // for each device, from its end of the second iteration
        for (std::size_t d = 0; d < o.devices; ++d) {
          double from_s = 0;
          double until_s = 0;
          for (auto const& entry : outcome.timeline) {
            if (entry.lane != Lane{LaneKind::compute, DeviceId(d)}) {
              continue;
            }
            // A call is one graph, and a step is another.
            if (iterations > 2 && entry.graph < 4) {
              from_s = std::max(from_s, entry.end_s);
            }
            until_s = std::max(until_s, entry.end_s);
          }
          window_s += (iterations > 2 ? until_s : result.makespan_s) - from_s;
        }
        CHECK(result.bubbles.total() == doctest::Approx(window_s - result.busy_s));
        CHECK(result.ratio() == doctest::Approx(1 - result.busy_s / window_s));
        for (std::size_t cause = 0; cause < bubble_cause_count; ++cause) {
          CHECK(result.bubbles[static_cast<BubbleCause>(cause)] >= 0);
        }
      }
    }
  }
}

TEST_CASE("schedules that hold weights need more memory, and their error says how much") {
  auto const problem = read_text(
      "{" + layers_text(R"("forward_ms": 5, "backward_ms": 10, "parameter_bytes": 1e8)", 12) + "}");
  Options o;
  o.device_memory = 500'000'000;
  auto const outcome = plan_schedule("roundpipe", problem, o);
  for (auto const& use : outcome.device_bytes) {
    CHECK(use.total() <= *o.device_memory);
    CHECK(use.parameters > 0);
  }
  auto const error = test::error_of([&] { (void)plan_schedule("gpipe", problem, o); });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().find("600000000 bytes would do") != std::string::npos);
}

}  // namespace plan_pipeline_test
