// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The code of docs/02_schedules.md, for which docs_are_tested.cmake looks here, and its table of
// rooflines. docs_figures.cmake checks its tables of simulations.

#include <roundpipe/roundpipe.hpp>
#include <roundpipe/trace/svg_timeline.hpp>
#include <support/shapes.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace roundpipe;

/// Deals slots two at a time: every other boundary stays on its device.
struct PairedSchedule {
  DeviceTasks tasks(ScheduleShape const& shape) const {
    DeviceTasks result(shape.devices);
    std::size_t slot = 0;
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      for (std::size_t stage = 0; stage < shape.stages(); ++stage) {
        auto& device = result[slot++ / 2 % shape.devices];
        for (std::size_t m = 0; m < shape.micro_batches_per_round; ++m) {
          for (auto const kind : kinds(shape, stage)) {
            device.push_back({StageId(stage), kind, RoundId(round), MicroBatchId(m)});
          }
        }
      }
    }
    return result;
  }
  /// The next call begins with the device after the last slot's.
  std::size_t advance(ScheduleShape const& shape) const {
    return (shape.stages() * shape.rounds + 1) / 2 % shape.devices;
  }

 private:
  static std::vector<TaskKind> kinds(ScheduleShape const& shape, std::size_t stage) {
    if (stage < shape.forward_stages) {
      return {TaskKind::forward};
    }
    if (stage == shape.forward_stages && shape.fused) {
      return {TaskKind::fused};
    }
    return {TaskKind::recompute, TaskKind::backward};
  }
};

static_assert(Schedule<PairedSchedule>);

/// The cells of the page's row that begins with \p name.
std::vector<std::string> row_of(std::string const& name) {
  auto const root = std::filesystem::path(__FILE__).parent_path() / "../../..";
  std::ifstream page(root / "docs" / "02_schedules.md");
  REQUIRE(page.is_open());
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| " + name + " |")) {
      std::vector<std::string> cells;
      std::istringstream text(line.substr(2));
      for (std::string cell; std::getline(text, cell, '|');) {
        cells.push_back(cell);
      }
      return cells;
    }
  }
  return {};
}

std::string fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace

TEST_CASE("a user's own schedule runs, is simulated and drawn, and changes no weights") {
  auto const model = test::toy_model({.dense = 6});
  HostBackend backend{{.devices = 3}};
  PipelineOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  auto const train = [&](auto& pipeline) {
    test::ToyData const data(4, {2, 3}, 1);
    for (int step = 0; step < 3; ++step) {
      pipeline.forward_backward(data.batch());
      pipeline.step();
    }
    return weights_digest(pipeline);
  };
  Pipeline round_robin{model, Sgd{}, backend, options};

  Pipeline pipeline{model, Sgd{}, backend, options, Policies{.schedule = PairedSchedule{}}};

  CHECK(train(pipeline) == train(round_robin));

  SimulationOptions machine;
  machine.compute.layers.assign(8, {.forward_s = 1e-3, .backward_s = 2e-3});
  machine.compute.step_s.assign(pipeline.plan().blocks.blocks.size(), 2e-3);  // the optimizer
  machine.link = {.upload_bytes_per_second = 25e9, .download_bytes_per_second = 25e9};
  auto const forecast = [&](auto const& any) {
    GraphSequence iterations(3);  // devices
    for (int i = 0; i < 12; ++i) {
      iterations.add(any.plan().graph).add(any.plan().step);
    }
    return simulate(iterations, machine);
  };
  auto const simulation = forecast(pipeline);
  auto const idle = account_bubbles(simulation);
  std::printf("%.1f ms an iteration, %.1f %% bubble; round robin %.1f ms\n",
              1e3 * idle.iteration_s,
              1e2 * idle.ratio(),
              1e3 * account_bubbles(forecast(round_robin)).iteration_s);
  SvgOptions look;
  look.title = "two slots at a time";
  save_svg_timeline("paired.svg", simulation.timeline, look);

  CHECK(idle.iterations == 12);
  CHECK(1e3 * idle.iteration_s == doctest::Approx(62.0).epsilon(1e-3));
  CHECK(1e2 * idle.ratio() == doctest::Approx(33.3).epsilon(2e-3));
  CHECK(1e3 * account_bubbles(forecast(round_robin)).iteration_s ==
        doctest::Approx(41.2).epsilon(1e-3));
  CHECK(std::filesystem::file_size("paired.svg") > 1000);
  std::filesystem::remove("paired.svg");
}

TEST_CASE("the page's rooflines agree with the library") {
  auto const device = test::rtx4090();
  for (auto const* const name :
       {"qwen3-1.7b", "llama3.1-8b", "gpt-oss-20b", "qwen3-32b", "qwen3-235b-a22b"}) {
    auto const shape = model_shape(name);
    BatchShape const batch{.rows = 4, .length = 2048};
    auto const reload_s = reload_seconds(shape, device, batch);
    auto const recompute_s = recompute_seconds(shape, device, batch);
    std::vector<std::string> const cells{fixed(1e3 * reload_s, 1),
                                         fixed(1e3 * recompute_s, 1),
                                         fixed(reload_s / recompute_s, 2),
                                         fixed(operational_intensity(shape, {1, 2048}), 0),
                                         fixed(operational_intensity(shape, {4, 2048}), 0),
                                         fixed(operational_intensity(shape, {16, 2048}), 0),
                                         fixed(operational_intensity(shape, {64, 2048}), 0),
                                         std::to_string(least_batch(shape, device, 2048).value())};
    std::string printed = std::string("| ") + name + " |";
    for (auto const& cell : cells) {
      printed += " " + cell + " |";
    }
    std::printf("%s\n", printed.c_str());
    auto const row = row_of(name);
    REQUIRE(row.size() == cells.size() + 1);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      CHECK(row[i + 1] == " " + cells[i] + " ");
    }
  }
  CHECK(ridge_point(device) == doctest::Approx(10312.5));
}
