// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Plans a pipeline before it runs: stages, schedules, bubbles and their causes, pictures;
/// or what the library chooses by itself, and what more memory would bring. `plan_pipeline --help`
/// lists the options.

#include <common/one_line.hpp>
#include <common/output_file.hpp>
#include <common/run_program.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "plan_pipeline/adaptive.hpp"
#include "plan_pipeline/adaptive_report.hpp"
#include "plan_pipeline/options.hpp"
#include "plan_pipeline/planning.hpp"
#include "plan_pipeline/problem.hpp"
#include "plan_pipeline/report.hpp"
#include "plan_pipeline/scaling.hpp"

namespace {

using namespace plan_pipeline;

/// Prints the notes beside the results, if there are results; an error alone prints a single line.
using Notes = std::vector<std::string>;

Problem read_problem(Options const& o, Notes& notes) {
  if (!o.costs.empty()) {
    return read_costs(o.costs);
  }
  std::vector<std::string> warnings;
  auto problem = estimate_costs(
      o.model_shape,
      o.hardware,
      {o.micro_batch, o.context},
      static_cast<std::int64_t>(o.micro_batches_per_round.value_or(automatic_round(o))),
      warnings);
  for (auto const& warning : warnings) {
    notes.push_back("note: " + warning);
  }
  return problem;
}

/// The outcomes of the schedules that the user named; for `all`, of those that apply.
std::vector<Outcome> plan(Options const& o, Problem const& problem, Notes& notes) {
  std::vector<Outcome> outcomes;
  if (o.schedule != "all") {
    outcomes.push_back(plan_schedule(o.schedule, problem, o));
  } else {
    std::string refusal;  // the last refusal
    for (auto const& name : known_schedules()) {
      try {
        outcomes.push_back(plan_schedule(name, problem, o));
      } catch (roundpipe::Error const& error) {
        refusal = examples::one_line(error);
        notes.push_back("note: " + name + " is left out: " + refusal);
      }
    }
    if (outcomes.empty()) {
      throw roundpipe::Error(
          roundpipe::Errc::invalid_argument,
          "no schedule applies; " + known_schedules().back() + " for one: " + refusal);
    }
  }
  for (auto const& outcome : outcomes) {
    for (auto const& warning : outcome.warnings) {
      notes.push_back(outcome.schedule + ": " + warning);
    }
  }
  return outcomes;
}

/// \p path, with the schedule's name inserted when there are several.
std::string path_for(std::string const& path, Outcome const& outcome, std::size_t outcomes) {
  std::filesystem::path result(path);
  if (outcomes > 1) {
    auto const extension = result.extension().string();
    result.replace_extension();
    result += "-" + outcome.schedule + extension;
  }
  return result.string();
}

/// Lets the library choose.
void run_adaptive(Options const& o) {
  auto const hardware = hardware_named(o.hardware);
  roundpipe::BatchCut const wanted{.rows = o.has_micro_batch ? o.micro_batch : 0,
                                   .micro_batches_per_round = o.micro_batches_per_round.value_or(0),
                                   .rounds = o.rounds.value_or(0)};
  AdaptivePlanner const planner({.shape = roundpipe::model_shape(o.model_shape),
                                 .hardware = hardware,
                                 .devices = o.devices,
                                 .batch = {*o.global_batch, o.context},
                                 .wanted = wanted,
                                 .host_memory = o.host_memory.value_or(no_limit),
                                 .states = o.states == "declared" ? roundpipe::StateType::declared
                                                                  : roundpipe::StateType::fp32});
  auto const device_memory = o.device_memory.value_or(hardware.device.memory_bytes);
  std::optional<examples::OutputFile> picture;
  if (!o.frontier.empty()) {
    picture.emplace(o.frontier);
  }
  std::optional<examples::OutputFile> scaling_picture;
  if (!o.scaling.empty()) {
    scaling_picture.emplace(o.scaling);
  }
  auto const plan = planner.plan(device_memory);
  fmt::print("{}", adaptive_text(planner, plan));
  if (!o.hosts.empty()) {
    std::fflush(stdout);
    auto const scaling =
        scaling_of(planner, plan, {o.hosts, o.network_gbits, o.network_latency_us * 1e-6});
    fmt::print("\n{}", scaling_text(scaling));
    if (scaling_picture) {
      write_scaling(scaling_picture->stream(), planner, scaling);
      scaling_picture->commit();
    }
  }
  if (picture) {
    std::fflush(stdout);
    auto const plans = frontier(planner, [](AdaptivePlan const& planned) {
      fmt::print(stderr,
                 "plan_pipeline: planned for {}\n",
                 roundpipe::format_bytes(planned.choice.options.device_memory));
    });
    write_frontier(picture->stream(), planner, plans);
    picture->commit();
    fmt::print("\nfrontier\n{}", frontier_text(planner, plans));
  }
}

void run(Options const& o) {
  if (o.global_batch) {
    run_adaptive(o);
    return;
  }
  Notes notes;
  auto const problem = read_problem(o, notes);
  auto const outcomes = plan(o, problem, notes);
  std::deque<examples::OutputFile> files;  // all files appear together
  if (!o.json.empty() && o.json != "-") {
    write_json(files.emplace_back(o.json).stream(), outcomes);
  }
  for (auto const& outcome : outcomes) {
    if (!o.svg.empty()) {
      write_svg(files.emplace_back(path_for(o.svg, outcome, outcomes.size())).stream(), outcome);
    }
    if (!o.trace.empty()) {
      write_trace(files.emplace_back(path_for(o.trace, outcome, outcomes.size())).stream(),
                  outcome);
    }
  }
  for (auto& file : files) {
    file.commit();
  }
  for (auto const& text : notes) {
    fmt::print(stderr, "plan_pipeline: {}\n", text);
  }
  if (o.json == "-") {
    write_json(std::cout, outcomes);
  } else {
    fmt::print("{}", table_text(problem, o, outcomes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("plan_pipeline", parse_options, run, argc, argv);
}
