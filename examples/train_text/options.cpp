// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "options.hpp"

#include <common/command_line.hpp>
#include <common/rank_options.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace train_text {

namespace {

using examples::refuse;
using examples::wrapped;

constexpr std::int64_t most_threads = 1024;

void check_options(Options const& o) {
  auto const at_least_one = [](char const* name, std::int64_t value) {
    if (value < 1 || value > std::numeric_limits<std::int32_t>::max()) {
      refuse(std::string(name) + " is " + std::to_string(value) + ", but must be at least 1" +
             (value > 1 ? " and fit 32 bits" : ""));
    }
  };
  auto const divides = [](char const* name, std::int64_t n, std::string const& of, std::int64_t m) {
    if (m % n != 0) {
      refuse(of + " is " + std::to_string(m) + ", which " + name + ", " + std::to_string(n) +
             ", do not divide");
    }
  };
  auto const at_least_zero = [](char const* name, double value) {
    if (!std::isfinite(value) || value < 0) {
      refuse(std::string(name) + " must be a finite number and not negative");
    }
  };
  at_least_one("--layers", o.layers);
  at_least_one("--hidden", o.hidden);
  at_least_one("--heads", o.heads);
  at_least_one("--kv-heads", o.kv_heads);
  at_least_one("--context", o.context);
  at_least_one("--batch", o.batch);
  at_least_one("--micro-batches", o.micro_batches_per_round);
  at_least_one("--rounds", o.rounds);
  at_least_one("--steps", o.steps);
  at_least_one("--devices", o.devices);
  divides("--heads", o.heads, "--hidden", o.hidden);
  divides("--kv-heads", o.kv_heads, "--heads", o.heads);
  if (o.hidden / o.heads % 2 != 0) {
    refuse("--hidden over --heads is " + std::to_string(o.hidden / o.heads) +
           ", but a head's size must be even");
  }
  divides("--micro-batches times --rounds", o.micro_batches_per_call(), "--batch", o.batch);
  if (o.seed < 0) {
    refuse("--seed must not be negative");
  }
  at_least_zero("--seconds", o.seconds);
  at_least_zero("--clip", o.clip);
  at_least_zero("--link-gbps", o.link_gbps);
  check_precision(o);
  if (o.gradient_buffers != 1 && o.gradient_buffers != 2) {
    refuse("--gradient-buffers is " + std::to_string(o.gradient_buffers) + ", but must be 1 or 2");
  }
  if (o.optimizer_threads < 0 || o.optimizer_threads > most_threads) {
    refuse("--optimizer-threads is " + std::to_string(o.optimizer_threads) +
           ", but must be 0 (automatic) to " + std::to_string(most_threads));
  }
  if (!std::isfinite(o.highest_rate()) || o.highest_rate() <= 0) {
    refuse("--lr must be a positive, finite number");
  }
  if (!(o.dropout >= 0 && o.dropout < 1)) {
    refuse("--dropout must be at least 0 and below 1");
  }
  if (o.device_memory == 0) {
    refuse("--device-memory must be more than 0 bytes");
  }
  if (!o.json.empty() && o.json == o.trace) {
    refuse("--json and --trace name the same file");
  }
  if (o.serial && !o.trace.empty()) {
    refuse("--trace needs a timeline, and --serial has none");
  }
  if (o.serial && (o.automatic || !o.cost_file.empty())) {
    refuse("--auto and --cost-file are for devices, and --serial has none");
  }
  examples::check_network(o.network, o.backend);
  if (o.backend == "cuda" && o.serial) {
    refuse("--serial trains on the CPU, without --backend cuda");
  }
  if (o.backend == "cuda" && o.link_gbps > 0) {
    refuse("--link-gbps is for emulated devices, not for --backend cuda");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  std::string memory = "2GiB";
  std::string host_memory = "unlimited";
  CLI::App app{
      "Trains a byte-level transformer on text: weights, gradients and optimizer states live on "
      "the\n"
      "host, and devices (emulated by threads, or GPUs) only compute. Sizes take KiB, MiB and "
      "GiB.\n",
      "train_text"};
  app.get_formatter()->column_width(28);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto const option = [&](char const* group, char const* name, auto& value, char const* help) {
    return app.add_option(name, value, wrapped(help))->capture_default_str()->group(group);
  };
  auto const flag = [&](char const* group, char const* name, bool& value, char const* help) {
    app.add_flag(name, value, wrapped(help))->group(group);
  };

  option("Text",
         "--data",
         o.data,
         "Files or folders to learn from (default: the project's own sources and docs). A folder "
         "stands for all text files below it except hidden ones. The last tenth of each stretch "
         "of about 40 KiB is held out for validation")
      ->type_name("PATH")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("");

  auto const model = [&](char const* name, auto& value, char const* help) {
    return option("Model", name, value, help);
  };
  model("--layers", o.layers, "Transformer blocks, between the embedding and the head");
  model("--hidden", o.hidden, "Width of the vectors between layers");
  model("--heads", o.heads, "Query heads; must divide --hidden");
  model("--kv-heads", o.kv_heads, "Key and value heads; must divide --heads");
  model("--context", o.context, "Bytes in a sequence");
  flag("Model",
       "--tied,!--untied",
       o.tied,
       "Whether the embedding and the head share one table (default: tied)");
  model("--precision",
        o.precision,
        "Type of master copies, of boundaries between layers and of rounded gradients; sums are "
        "always fp32. fp16 comes with a loss scale that adapts: steps that overflow are skipped")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  model("--master",
        o.master,
        "Copies of the weights that devices upload. single and double are rounded from the "
        "optimizer's own fp32 weights; with double, old weights go up while the optimizer writes "
        "new ones. bf16 is double without fp32 weights; optimizer states are bf16 too, rounded "
        "at random (needs --precision bf16). With --sync there is always one copy")
      ->check(CLI::IsMember({"single", "double", "bf16"}));

  auto const training = [&](char const* name, auto& value, char const* help) {
    return option("Training", name, value, help);
  };
  training("--batch",
           o.batch,
           "Sequences in an iteration; --micro-batches times --rounds must divide it");
  training("--micro-batches",
           o.wanted_micro_batches,
           "Micro-batches in a round (default: 4, or as --auto chooses)");
  training(
      "--rounds", o.wanted_rounds, "Rounds in an iteration (default: 1, or as --auto chooses)");
  examples::add_rank_options(app, o.network, o.deal, "Training");
  flag(
      "Training",
      "--auto",
      o.automatic,
      "Measure the layers and, under mpirun, the network, and cut the batch into micro-batches and "
      "rounds as is fastest by forecast. --micro-batches and --rounds pin their part of the "
      "choice");
  training("--steps", o.steps, "Iterations");
  training("--seconds",
           o.seconds,
           "Stop after this time even if --steps are not done; 0: no limit, so equal options "
           "give equal weights on machines of any speed");
  training("--optimizer", o.optimizer, "Update rule")->check(CLI::IsMember({"adamw", "sgd"}));
  training(
      "--lr",
      o.lr,
      "Highest learning rate (default: 0.002 for adamw, 0.1 for sgd), reached after a twentieth "
      "of --steps and falling to a tenth of it along a cosine");
  training("--dropout", o.dropout, "Dropout rate; 0: off");
  training("--clip", o.clip, "Largest global norm of the gradient; 0: off");
  training("--loss-scale",
           o.loss_scale,
           "Initial factor of the losses (default: 65536; only with --precision fp16)");
  training("--seed", o.seed, "Seed of initial weights, batches, dropout and the sample");
  flag("Training",
       "--sync",
       o.sync,
       "Make each iteration wait for the optimizer (by default it computes with weights that "
       "are one step old, while the optimizer runs beside it)");
  flag("Training",
       "--serial",
       o.serial,
       "Do the same training in a plain loop, without stages, transfers and threads: the "
       "oracle. It has no devices: in the report, stages are empty and the figures of devices "
       "and memory are 0. --master single and double, --gradient-buffers and "
       "--optimizer-threads make no difference");

  auto const devices = [&](char const* name, auto& value, char const* help) {
    return option("Devices", name, value, help);
  };
  devices("--backend", o.backend, "host: devices emulated by threads; cuda: GPUs")
      ->check(CLI::IsMember({"host", "cuda"}));
  devices("--devices",
          o.wanted_devices,
          "Devices of each rank (default: 4 emulated ones, or all GPUs that other ranks leave)");
  devices("--device-memory",
          memory,
          "Memory budget of each device; a GPU's context, libraries and network take their part")
      ->type_name("SIZE");
  devices("--host-memory", host_memory, "Budget of the host; unlimited: what the process may take")
      ->type_name("SIZE");
  devices("--link-gbps",
          o.link_gbps,
          "Gigabytes a second between the host and each device, in each direction; 0: unlimited");
  devices(
      "--gradient-buffers",
      o.gradient_buffers,
      "Buffers on the host for each gradient: with 2, an iteration may write gradients while the "
      "optimizer still reads those of the iteration before. With --sync there is always one");
  devices("--optimizer-threads",
          o.optimizer_threads,
          "Threads that update parameters; 0: one for each core that no device needs, pinned to "
          "that core where cores are not shared");
  devices("--cost-file",
          o.cost_file,
          "Balance stages by the costs of layers in this file; those that it lacks are measured "
          "and added to it")
      ->type_name("FILE");

  auto const output = [&](char const* name, std::string& value, char const* help) {
    option("Output", name, value, help)->type_name("FILE");
  };
  output("--json", o.json, "Write the report there");
  output("--trace",
         o.trace,
         "Write the measured timeline of the last iterations there, for Perfetto or "
         "chrome://tracing");
  flag("Output", "--quiet", o.quiet, "Print errors only");

  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.device_memory = examples::bytes_of("--device-memory", memory);
  o.host_memory = examples::budget_of("--host-memory", host_memory);
  o.devices = o.wanted_devices.value_or(o.devices);
  o.micro_batches_per_round =
      o.wanted_micro_batches.value_or(o.automatic ? 1 : o.micro_batches_per_round);
  o.rounds = o.wanted_rounds.value_or(o.rounds);
  check_options(o);
  return o;
}

void join(Options& o, roundpipe::AnyProcessGroup group) {
  o.group = std::move(group);
  if (o.group.size() == 1) {
    return;
  }
  if (o.serial || !o.cost_file.empty()) {
    refuse("--serial and --cost-file are for one process");
  }
  if (auto const parts = o.micro_batches_per_call(); o.batch % parts != 0) {
    refuse("--micro-batches times --rounds times the number of ranks is " + std::to_string(parts) +
           ", which does not divide --batch, " + std::to_string(o.batch));
  }
  if (o.group.rank() > 0) {
    o.quiet = true;
    o.json.clear();
    o.trace.clear();
  }
}

}  // namespace train_text
