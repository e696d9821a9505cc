// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "options.hpp"

#include <common/command_line.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace plan_pipeline {

namespace {

using examples::refuse;

/// A count from 1 on. \throws roundpipe::Error that names the option.
std::size_t count_of(std::string const& option,
                     std::string const& text,
                     std::size_t most = 100'000) {
  std::size_t count = 0;
  auto const is_number = !text.empty() && text.size() <= 6 &&
                         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) {
    count = std::stoul(text);
  }
  if (count < 1 || count > most) {
    refuse(fmt::format("{} is '{}', but must be a number from 1 to {}", option, text, most));
  }
  return count;
}

void check_options(Options const& o) {
  if (o.costs.empty() == o.model_shape.empty()) {
    refuse("give either --costs FILE or --model-shape NAME with --hardware FILE");
  }
  if (o.model_shape.empty() != o.hardware.empty()) {
    refuse("--model-shape and --hardware go together");
  }
  if (o.context < 1 || o.micro_batch < 1 || o.context > 1'000'000'000 ||
      o.micro_batch > 1'000'000'000) {
    refuse("--context and --micro-batch must be numbers from 1 to 1e9");
  }
  if (o.global_batch && o.context > 10'000'000) {  // workspaces grow with its square
    refuse("--context must be at most 1e7 with --global-batch");
  }
  if (o.device_memory == roundpipe::Bytes{0} || o.host_memory == roundpipe::Bytes{0}) {
    refuse("--device-memory and --host-memory must be more than 0 bytes");
  }
  for (auto const speed : o.device_speeds) {
    if (!(speed >= 1e-6 && speed <= 1e6)) {
      refuse(fmt::format("--device-speeds has {}, but speeds lie from 1e-6 to 1e6", speed));
    }
  }
  for (auto const rate : o.network_gbits) {
    if (!(rate >= 1e-3 && rate <= 1e6)) {
      refuse(fmt::format("--network-gbits has {}, but rates lie from 0.001 to 1e6", rate));
    }
  }
  if (!(o.network_latency_us >= 0 && o.network_latency_us <= 1e6)) {
    refuse("--network-latency-us must be a number from 0 to 1e6");
  }
  if (!o.device_speeds.empty() && o.device_speeds.size() != o.devices) {
    refuse(fmt::format("--device-speeds has {} speeds, but there are {} devices",
                       o.device_speeds.size(),
                       o.devices));
  }
  if (!o.global_batch && o.micro_batches_per_round &&
      o.micro_batches_per_call % *o.micro_batches_per_round != 0) {
    refuse(fmt::format("--micro-batches-per-round, {}, does not divide --micro-batches, {}",
                       *o.micro_batches_per_round,
                       o.micro_batches_per_call));
  }
  if (!o.forward_stages.empty() && o.backward_stages.empty()) {
    refuse("--forward-stages needs --backward-stages, too");
  }
  std::pair<char const*, std::string const*> const files[] = {
      {"--json", &o.json}, {"--svg", &o.svg}, {"--trace", &o.trace}};
  for (auto const& a : files) {
    for (auto const& b : files) {
      if (&a < &b && !a.second->empty() && *a.second == *b.second) {
        refuse(fmt::format("{} and {} name the same file", a.first, b.first));
      }
    }
  }
  auto const& known = known_schedules();
  if (o.schedule != "all" && std::ranges::find(known, o.schedule) == known.end()) {
    refuse(fmt::format(
        "--schedule '{}' is not known; known are {}, all", o.schedule, fmt::join(known, ", ")));
  }
}

}  // namespace

std::vector<std::string> const& known_schedules() {
  static std::vector<std::string> const names{"naive",
                                              "gpipe",
                                              "1f1b",
                                              "interleaved-1f1b",
                                              "looped-bfs",
                                              "zb-h1",
                                              "dualpipe",
                                              "roundpipe",
                                              "earliest-finish"};
  return names;
}

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  CLI::App app{
      "Plans a pipeline before it runs: cuts a model into stages, simulates schedules, and says "
      "how\n"
      "long an iteration takes and what devices wait for. Costs are measured (--costs) or "
      "estimated\n"
      "(--model-shape and --hardware)."};
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::string devices = "4";
  std::string micro_batches = "8";
  std::string per_round = "auto";
  std::string stages_per_device;
  std::string iterations;
  std::vector<std::string> device_memory;
  std::vector<std::string> forward;
  std::vector<std::string> backward;

  auto const model = [&](char const* name, auto& value, char const* text) {
    return app.add_option(name, value, text)->group("Model");
  };
  model("--costs", o.costs, "JSON file of times and bytes by layer, and of links");
  model("--model-shape", o.model_shape, "Shape for estimated costs, for example llama3.1-8b");
  model("--hardware", o.hardware, "JSON file, or a name: rtx4090, rtx5090, a100, h100, h200");
  model("--context", o.context, "Tokens in a sequence, with --model-shape")->capture_default_str();
  auto* const micro_batch =
      model("--micro-batch", o.micro_batch, "Sequences in a micro-batch, with --model-shape")
          ->capture_default_str();

  auto const machine = [&](char const* name, auto& value, char const* text) {
    return app.add_option(name, value, text)->group("Machine");
  };
  machine("--devices", devices, "Devices")->capture_default_str();
  machine("--device-speeds", o.device_speeds, "Speed of each device; the costs are for 1: 1,1,0.5")
      ->delimiter(',');
  machine("--device-memory",
          device_memory,
          "Budget of every device: 24GiB, 512MiB, or bytes; or one for each: 24GiB,16GiB")
      ->delimiter(',');

  auto const call = [&](char const* name, auto& value, char const* text) {
    return app.add_option(name, value, text)->group("Schedule");
  };
  call("--schedule", o.schedule, fmt::format("{}, all", fmt::join(known_schedules(), ", ")).c_str())
      ->capture_default_str();
  call("--micro-batches", micro_batches, "Micro-batches in an iteration")->capture_default_str();
  call("--micro-batches-per-round", per_round, "Micro-batches in a round, or auto")
      ->capture_default_str();
  call("--stages-per-device",
       stages_per_device,
       "Stages on each device in schedules that loop; default: searched");
  call("--forward-stages", forward, "Layers of each forward stage, in order: 5,5,6")
      ->delimiter(',');
  call(
      "--backward-stages", backward, "Layers of each backward stage, in order, the fused one first")
      ->delimiter(',');
  call("--partition-by", o.partition_by, "How the planner chooses stages")
      ->check(CLI::IsMember({"bound", "simulation"}))
      ->capture_default_str();
  call("--iterations", iterations, "Iterations to simulate; default: 1, asynchronous 12");
  app.add_flag("--asynchronous", o.asynchronous, "The optimizer is one step behind")
      ->group("Schedule");
  app.add_flag("--recompute-waits-for-gradient",
               o.recompute_waits_for_gradient,
               "Recompute only once the gradient is there")
      ->group("Schedule");

  auto const output = [&](char const* name, std::string& value, char const* text) {
    return app.add_option(name, value, text)->group("Output");
  };
  std::string global_batch;
  std::string host_memory;
  auto const adaptive = [&](char const* name, auto& value, char const* text) {
    return app.add_option(name, value, text)->group("Adaptive: the library chooses");
  };
  auto* const batch = adaptive("--global-batch",
                               global_batch,
                               "Sequences in an iteration; chooses all that the schedule's options "
                               "name. --micro-batch, --micro-batches-per-round and --rounds pin "
                               "their part of the choice");
  std::string rounds;
  adaptive("--rounds", rounds, "Rounds in an iteration; default: chosen")->needs(batch);
  adaptive("--host-memory", host_memory, "Budget of the host, as --device-memory; default: none")
      ->needs(batch);
  adaptive("--states", o.states, "What the optimizer keeps: fp32 beside bf16 weights, or no more")
      ->check(CLI::IsMember({"fp32", "declared"}))
      ->capture_default_str()
      ->needs(batch);
  adaptive("--frontier",
           o.frontier,
           "Draw tokens/s by device memory, from the least that does; prints a table, too")
      ->needs(batch);
  std::vector<std::string> host_counts;
  auto* const hosts = adaptive("--hosts",
                               host_counts,
                               "Numbers of such hosts, each with --global-batch sequences of its "
                               "own: prints how they scale: 1,8,1024")
                          ->delimiter(',')
                          ->needs(batch);
  adaptive("--network-gbits", o.network_gbits, "10^9 bits/s of a host's link, each way")
      ->delimiter(',')
      ->capture_default_str()
      ->needs(hosts);
  adaptive("--network-latency-us", o.network_latency_us, "Of a message between hosts")
      ->capture_default_str()
      ->needs(hosts);
  adaptive("--scaling", o.scaling, "Draw the efficiency of the most hosts by their batch")
      ->needs(hosts);
  output("--json", o.json, "Write all figures to a file, or - for standard output");
  output("--svg", o.svg, "Draw the timeline; several schedules: one file for each");
  output("--trace", o.trace, "Write the timeline for Perfetto; files as for --svg");
  for (auto* const option : app.get_options()) {
    static std::set<std::string> const also{"--help",
                                            "--model-shape",
                                            "--hardware",
                                            "--context",
                                            "--micro-batch",
                                            "--micro-batches-per-round",
                                            "--rounds",
                                            "--devices",
                                            "--device-memory",
                                            "--global-batch",
                                            "--host-memory",
                                            "--states",
                                            "--frontier",
                                            "--hosts",
                                            "--network-gbits",
                                            "--network-latency-us",
                                            "--scaling"};
    if (!also.contains(option->get_name())) {
      batch->excludes(option);
    }
  }
  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.has_micro_batch = micro_batch->count() > 0;
  if (!rounds.empty()) {
    o.rounds = count_of("--rounds", rounds);
  }
  if (!global_batch.empty()) {
    o.global_batch = static_cast<std::int64_t>(count_of("--global-batch", global_batch));
  }
  if (!host_memory.empty()) {
    o.host_memory = examples::bytes_of("--host-memory", host_memory);
  }
  o.devices = count_of("--devices", devices, 1000);
  o.micro_batches_per_call = count_of("--micro-batches", micro_batches);
  if (per_round != "auto") {
    o.micro_batches_per_round = count_of("--micro-batches-per-round", per_round);
  }
  if (!stages_per_device.empty()) {
    o.stages_per_device = count_of("--stages-per-device", stages_per_device);
  }
  if (!iterations.empty()) {
    o.iterations = count_of("--iterations", iterations);
  }
  for (auto const& text : host_counts) {
    o.hosts.push_back(count_of("--hosts", text));
  }
  for (auto const& text : device_memory) {
    auto const budget = examples::bytes_of("--device-memory", text);
    o.device_memory = std::min(o.device_memory.value_or(budget), budget);
  }
  if (device_memory.size() > 1 && device_memory.size() != o.devices) {
    refuse(fmt::format("--device-memory has {} budgets, but there are {} devices",
                       device_memory.size(),
                       o.devices));
  }
  for (auto const& text : forward) {
    o.forward_stages.push_back(count_of("--forward-stages", text));
  }
  for (auto const& text : backward) {
    o.backward_stages.push_back(count_of("--backward-stages", text));
  }
  check_options(o);
  return o;
}

}  // namespace plan_pipeline
