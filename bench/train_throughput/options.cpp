// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <train_throughput/options.hpp>

#include <common/command_line.hpp>
#include <common/rank_options.hpp>
#include <common/ranks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/plan_options.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace train_throughput {

using examples::refuse;

void add_training_options(CLI::App& app, Options& o) {
  throughput::add_options(app, o);
  auto const add = [&](char const* name, auto& value, char const* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
  add("--devices", o.devices, "GPUs; with several ranks, of each");
  add("--micro-batches",
      o.micro_batches_per_round,
      "Micro-batches in a round; 0: as the forecast chooses");
  add("--rounds", o.rounds, "Rounds in an iteration; 0: as the forecast chooses");
  examples::add_rank_options(app, o.network, o.deal);
  add("--precision", o.precision, "Type of weights, boundaries and products")
      ->check(CLI::IsMember({"bf16", "fp16"}));
  add("--states",
      o.states,
      "What the optimizer keeps: weights and states in fp32, or states in the weights' type alone")
      ->check(CLI::IsMember({"fp32", "declared"}));
  app.add_flag("--sync", o.sync, "Make each iteration wait for the optimizer");
  add("--schedule", o.schedule, "How stages are dealt to GPUs")
      ->check(CLI::IsMember({"roundpipe", "looped-bfs"}));
  add("--protocol", o.protocol, "What orders the optimizer")
      ->check(CLI::IsMember({"event", "blocking"}));
  add("--transfers", o.transfers, "Whether copies are cut and placed in windows")
      ->check(CLI::IsMember({"planned", "unplanned"}));
  add("--partition",
      o.partition,
      "Stages by the least bound, by simulation, with equal numbers of layers, or so that every "
      "layer but the last is recomputed (checkpoints between stages, nothing offloaded)")
      ->check(CLI::IsMember({"bound", "simulation", "uniform", "recompute-all"}));
  app.add_option(
         "--cost-file",
         o.cost_file,
         "Take the costs of layers from this file if it has them, else measure them and add "
         "them to it")
      ->type_name("FILE");
}

void complete(Options& o) {
  throughput::check(o);
  if (o.devices == 0) {
    refuse("--devices must be at least 1");
  }
  if (o.partition == "recompute-all") {
    if (o.checkpoints == "layers" || o.offload.value_or(0) > 0) {
      refuse("--partition recompute-all goes with --checkpoints stages and --offload 0");
    }
    o.checkpoints = "stages";
    o.offload = 0;
  }
  if (o.micro_batches_per_round > 0 && o.offload.value_or(0) > o.micro_batches_per_round) {
    refuse("--offload must be at most --micro-batches");
  }
  auto const micro_batches =
      static_cast<std::int64_t>(std::max<std::size_t>(o.micro_batches_per_round, 1) *
                                std::max<std::size_t>(o.rounds, 1) * o.group.size());
  if (o.batch % micro_batches != 0) {
    refuse("--batch is " + std::to_string(o.batch) + ", but must be a multiple of the " +
           std::to_string(micro_batches) + " micro-batches of an iteration" +
           (o.group.size() > 1 ? " of all ranks" : ""));
  }
}

void join(Options& o, roundpipe::AnyProcessGroup group, std::size_t local_rank) {
  o.group = std::move(group);
  if (o.group.size() == 1) {
    return;
  }
  if (!o.cost_file.empty()) {
    refuse("--cost-file is for one process");
  }
  complete(o);
  o.first_device = examples::first_rank_device(local_rank, o.devices);
  if (o.group.rank() > 0) {
    o.json.clear();
    o.trace.clear();
  }
}

void pin_plan(Options const& o, roundpipe::PipelineOptions& options) {
  auto const pin = [](std::string const& text) {
    return text == "auto" ? std::nullopt : std::optional(text == "on");
  };
  if (o.checkpoints != "auto") {
    options.checkpoints =
        o.checkpoints == "layers" ? roundpipe::Checkpoints::layers : roundpipe::Checkpoints::stages;
  }
  options.offloaded_micro_batches = o.offload;
  options.overlaps_rounds = pin(o.overlap);
  options.resident_parameters = pin(o.resident_parameters);
  options.resident_boundaries = pin(o.resident_boundaries);
  options.peer_boundaries = pin(o.peer_boundaries);
  options.buffering = o.buffering;
}

roundpipe::nn::TransformerConfig config_of(Options const& o) {
  return throughput::config_of(
      o, o.precision == "fp16" ? roundpipe::DType::f16 : roundpipe::DType::bf16);
}

std::string budget_text(Bytes budget) {
  return budget == 0 ? "unlimited" : roundpipe::format_bytes(budget);
}

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  std::string device_memory = "24GiB";
  std::string host_memory = "unlimited";
  CLI::App app{
      "Trains a transformer of a given shape on random tokens and reports its throughput.\n"
      "Weights, gradients, optimizer states and activations live in host memory.\n",
      "train_throughput"};
  app.get_formatter()->column_width(30);
  add_training_options(app, o);
  auto const add = [&](char const* name, auto& value, char const* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
  app.add_flag(
      "--auto",
      o.automatic,
      "Cut the batch into micro-batches and rounds as is fastest by forecast, the default; "
      "--micro-batches and --rounds pin their part of the choice");
  add("--checkpoints",
      o.checkpoints,
      "Boundaries that the host keeps: between stages, or behind every layer")
      ->check(CLI::IsMember({"auto", "stages", "layers"}));
  add("--overlap", o.overlap, "Whether a round's forward takes turns with the backward before")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  auto const add_pin = [&](char const* name, std::string& value, char const* help) {
    add(name, value, help)->check(CLI::IsMember({"auto", "on", "off"}));
  };
  add_pin("--resident-parameters",
          o.resident_parameters,
          "Whether parameters stay on GPUs for an iteration, as far as there is room");
  add_pin("--resident-boundaries",
          o.resident_boundaries,
          "Whether boundaries stay on the GPUs that make them, as far as there is room");
  add_pin("--peer-boundaries",
          o.peer_boundaries,
          "Whether boundaries go from GPU to GPU, as far as there is room");
  std::vector<std::size_t> entries;
  app.add_option(
         "--ring-entries",
         entries,
         "Entries of the rings of parameters, gradients, activations and saves, as 2,2,2,3; "
         "by default as the forecast chooses")
      ->delimiter(',')
      ->expected(4)
      ->check(CLI::Range(std::size_t{1}, roundpipe::most_ring_entries))
      ->type_name("P,G,A,S");
  app.add_option("--offload",
                 o.offload,
                 "Micro-batches of a round whose saved activations are offloaded, not recomputed; "
                 "by default as the forecast chooses");
  add("--device-memory",
      device_memory,
      "Budget of each GPU, whatever the card's memory; unlimited: what the card has")
      ->type_name("SIZE");
  add("--host-memory", host_memory, "Budget of the host; unlimited: what the process may take")
      ->type_name("SIZE");
  app.add_flag("--check-finite", o.check_finite, "Refuse the first value that is NaN or infinite");
  add("--json", o.json, "Write the report there; -: to the standard output")->type_name("FILE");
  add("--trace", o.trace, "Write the timeline of the last iterations there")->type_name("FILE");
  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.device_memory = examples::budget_of("--device-memory", device_memory);
  o.host_memory = examples::budget_of("--host-memory", host_memory);
  if (!entries.empty()) {
    o.buffering = {entries[0], entries[1], entries[2], entries[3]};
  }
  complete(o);
  return o;
}

}  // namespace train_throughput
