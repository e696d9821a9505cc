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

namespace finetune {

namespace {

using examples::refuse;
using examples::wrapped;

void require_whole(char const* name, std::int64_t value, std::int64_t least) {
  if (value < least || value > std::numeric_limits<std::int32_t>::max()) {
    refuse(std::string(name) + " is " + std::to_string(value) + ", but must be at least " +
           std::to_string(least) + " and fit 32 bits");
  }
}

void require_number(char const* name, double value, bool positive) {
  if (!std::isfinite(value) || value < 0 || (positive && value == 0)) {
    refuse(std::string(name) + " must be a finite number and " +
           (positive ? "positive" : "not negative"));
  }
}

void require_share(char const* name, double value) {
  if (!(value >= 0 && value < 1)) {
    refuse(std::string(name) + " must be at least 0 and below 1");
  }
}

void check_data(Options const& o) {
  if (!o.data_weights.empty() && o.data_weights.size() != o.data.size()) {
    refuse("--data-weights names " + std::to_string(o.data_weights.size()) + " weights for " +
           std::to_string(o.data.size()) + " files");
  }
  require_whole("--context", o.context, 0);
  require_whole("--held-out", o.held_out.value_or(0), 0);
  if (o.held_out == 1) {
    refuse("--held-out 1 would leave no row to train on");
  }
  require_whole("--eval-rows", o.evaluation_rows, 1);
}

void check_cut(Options const& o) {
  auto const ranks = static_cast<std::int64_t>(o.group.size());
  auto const cut = o.micro_batches.value_or(1) * o.rounds.value_or(1) * ranks;
  if (o.batch % cut != 0) {
    refuse("--batch is " + std::to_string(o.batch) + ", which --micro-batches times --rounds" +
           (ranks > 1 ? " times the number of ranks" : "") + ", " + std::to_string(cut) +
           ", do not divide");
  }
}

void check_training(Options const& o) {
  if (o.steps.has_value() == o.epochs.has_value()) {
    refuse("a training lasts for --steps or for --epochs: give one of them");
  }
  require_whole("--steps", o.steps.value_or(0), 0);
  require_number("--epochs", o.epochs.value_or(1), true);
  require_whole("--batch", o.batch, 1);
  require_whole("--micro-batches", o.micro_batches.value_or(1), 1);
  require_whole("--rounds", o.rounds.value_or(1), 1);
  check_cut(o);
  require_number("--lr", o.rate, true);
  require_whole("--warmup", o.warmup, 0);
  require_share("--beta1", o.beta1);
  require_share("--beta2", o.beta2);
  require_number("--eps", o.epsilon, true);
  require_number("--weight-decay", o.weight_decay, false);
  require_number("--clip", o.clip, false);
  require_share("--dropout", o.dropout);
  require_whole("--stop-after", o.stop_after, 0);
  require_whole("--save-every", o.save_every, 0);
  require_whole("--eval-every", o.evaluate_every, 0);
  require_number("--peak-tflops", o.peak_tflops, false);
}

void check_parts(Options const& o) {
  require_whole("--lora", o.lora_rank, 0);
  require_number("--lora-alpha", o.lora_alpha, false);
  require_share("--lora-dropout", o.lora_dropout);
  bool const has_options =
      o.lora_alpha > 0 || o.lora_dropout > 0 || o.rslora || !o.lora_targets.empty();
  if (!o.adapter.empty() && (o.lora_rank > 0 || has_options)) {
    refuse("--adapter says what its adapters are: --lora and its options have no place beside it");
  }
  if (o.lora_rank == 0 && has_options) {
    refuse("--lora-alpha, --lora-dropout, --lora-targets and --rslora need --lora");
  }
  if (!o.has_adapters() && o.merge) {
    refuse("--merge is for adapters: --lora or --adapter");
  }
  if (o.has_adapters() && !o.freeze.empty()) {
    refuse("--lora and --adapter freeze all other weights; --freeze has no place beside them");
  }
}

void check_outputs(Options const& o) {
  if (!o.json.empty() && o.json == o.trace) {
    refuse("--json and --trace name the same file");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  std::string device_memory = "unlimited";
  std::string host_memory = "unlimited";
  bool keeps_order = false;
  CLI::App app{
      "Trains the weights of a checkpoint folder further, and writes a folder that transformers\n"
      "opens. Weights, gradients and optimizer states live on the host; devices only compute.\n"
      "Sizes take KiB, MiB and GiB.\n",
      "finetune"};
  app.get_formatter()->column_width(28);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto const option = [&](char const* group, char const* name, auto& value, char const* help) {
    return app.add_option(name, value, wrapped(help))->capture_default_str()->group(group);
  };
  auto const list = [&](char const* group, char const* name, auto& value, char const* help) {
    return option(group, name, value, help)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->default_str("");
  };
  auto const flag = [&](char const* group, char const* name, bool& value, char const* help) {
    return app.add_flag(name, value, wrapped(help))->group(group);
  };

  char const* group = "Folders";
  option(group, "--model", o.model, "Where config.json and the weights are, as the hub has them")
      ->required()
      ->type_name("FOLDER");
  option(group,
         "--output",
         o.output,
         "Where the trained weights go, and all other files of --model; loss curves, too, and "
         "snapshots")
      ->required()
      ->type_name("FOLDER");
  flag(group,
       "--resume",
       o.resume,
       "Go on from the newest snapshot in --output; --steps counts those before, too");

  group = "Data";
  list(group,
       "--data",
       o.data,
       "Files of tokens (examples/tokenize_data.py makes them), or JSON lines with input_ids and, "
       "if you like, labels")
      ->required()
      ->type_name("FILE");
  list(group, "--data-weights", o.data_weights, "How often an epoch reads each file; 1 by default")
      ->type_name("NUMBER");
  option(group, "--context", o.context, "Tokens in a row; 0: 1024, or what the model is made for");
  option(group,
         "--packing",
         o.packing,
         "packed: documents one after another, cut into rows; documents: a padded row for each")
      ->check(CLI::IsMember({"packed", "documents"}));
  option(group,
         "--held-out",
         o.held_out,
         "Hold out one of so many rows from training, for the evaluation; 0: none, which "
         "evaluates rows that are trained on (default: 100 where there are 1000 rows, else 0)");
  option(group, "--eval-rows", o.evaluation_rows, "The most rows that an evaluation reads");
  flag(group, "--no-shuffle", keeps_order, "Train on rows in the order of the files");

  group = "Training";
  option(group,
         "--steps",
         o.steps,
         "Updates of the weights; 0: evaluate all of the data, and copy the model");
  option(group, "--epochs", o.epochs, "Passes over the data, in place of --steps");
  option(group, "--batch", o.batch, "Rows in a step");
  option(group,
         "--micro-batches",
         o.micro_batches,
         "Micro-batches in a round (default: chosen, with --rounds, as is fastest by forecast)");
  option(group, "--rounds", o.rounds, "Rounds in a step (default: chosen, or 1)");
  examples::add_rank_options(app, o.network, o.deal, group);
  option(group, "--lr", o.rate, "Highest learning rate");
  option(group,
         "--schedule",
         o.schedule,
         "Of the rate behind the warm-up: constant, or down to 0 at the last step")
      ->check(CLI::IsMember({"constant", "linear", "cosine"}));
  option(group, "--warmup", o.warmup, "Steps in which the rate rises");
  option(group, "--beta1", o.beta1, "AdamW's share of the mean of gradients that a step keeps");
  option(group, "--beta2", o.beta2, "The same of their squares");
  option(group, "--eps", o.epsilon, "AdamW's epsilon");
  option(group, "--weight-decay", o.weight_decay, "Of matrices, times the rate");
  option(group, "--clip", o.clip, "Largest global norm of the gradient; 0: off");
  option(group, "--dropout", o.dropout, "Rate, on the embedding and both branches of blocks");
  option(group, "--seed", o.seed, "Of the order of rows, what is held out, and dropout");
  flag(group,
       "--sync",
       o.sync,
       "Make each step wait for the optimizer (by default it computes with weights that are one "
       "step old, while the optimizer runs beside it)");

  group = "Parts";
  option(group,
         "--lora",
         o.lora_rank,
         "Train low-rank adapters of this rank, and nothing else; 0: all weights");
  option(group, "--lora-alpha", o.lora_alpha, "Their alpha; 0: the rank");
  option(group, "--lora-dropout", o.lora_dropout, "Dropout rate of what adapters read");
  list(group,
       "--lora-targets",
       o.lora_targets,
       "Patterns of the linear maps that get one, as q_proj, '[qv]_proj', lm_head (default: all of "
       "blocks)")
      ->type_name("PATTERN");
  flag(group, "--rslora", o.rslora, "Divide alpha by the root of the rank");
  option(group, "--adapter", o.adapter, "Go on with the adapters in this folder, as peft has them")
      ->type_name("FOLDER");
  flag(group, "--merge", o.merge, "Write merged weights, in place of adapters");
  list(group,
       "--freeze",
       o.freeze,
       "Patterns of the weights that stay as they are, by the checkpoint's names, as "
       "'*.layers.0.*', embed_tokens.weight")
      ->type_name("PATTERN");

  group = "Numbers";
  option(group,
         "--precision",
         o.wanted_precision,
         "Type of the weights on devices, of boundaries between layers and of rounded gradients; "
         "sums are always fp32")
      ->check(CLI::IsMember({"as-model", "fp32", "bf16", "fp16"}));
  option(group,
         "--master",
         o.master,
         "Copies of the weights that devices upload: two, one, or two of bf16 and no fp32 weights "
         "beside them, with states of bf16")
      ->check(CLI::IsMember({"single", "double", "bf16"}));
  option(group, "--loss-scale", o.loss_scale, "First factor of the losses, for fp16 alone");
  option(group, "--output-type", o.output_type, "Type of the weights in --output")
      ->check(CLI::IsMember({"as-model", "fp32", "bf16", "fp16"}));

  group = "Devices";
  option(group,
         "--backend",
         o.backend,
         "host: devices emulated by threads; cuda: GPUs (default: cuda where there is one)")
      ->check(CLI::IsMember({"host", "cuda"}));
  option(group,
         "--devices",
         o.devices,
         "Devices of each rank (default: one emulated, or all GPUs that other ranks leave)");
  option(group, "--device-memory", device_memory, "Budget of each; unlimited: what it has")
      ->type_name("SIZE");
  option(group, "--host-memory", host_memory, "Budget; unlimited: what the process may take")
      ->type_name("SIZE");
  option(group,
         "--peak-tflops",
         o.peak_tflops,
         "Peak of one device, for the MFU; 0: measure a product on GPUs");

  group = "Output";
  option(group,
         "--save-every",
         o.save_every,
         "Save a snapshot, to resume from, after so many steps and at the end; 0: only when "
         "Ctrl-C or SIGTERM ends the training");
  option(group, "--keep", o.keep, "How many snapshots to keep")->check(CLI::Range(1, 1000));
  option(group,
         "--stop-after",
         o.stop_after,
         "End with a snapshot, as Ctrl-C does, when so many steps of all are done; 0: do all");
  option(group,
         "--eval-every",
         o.evaluate_every,
         "Evaluate at the beginning and after so many steps; 0: at the end alone");
  option(group, "--json", o.json, "Write a report there")->type_name("FILE");
  option(group, "--trace", o.trace, "Write the timeline of the last steps there, for Perfetto")
      ->type_name("FILE");
  flag(group, "--quiet", o.quiet, "Print errors only");

  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.shuffles = !keeps_order;
  o.device_memory = examples::budget_of("--device-memory", device_memory);
  o.host_memory = examples::budget_of("--host-memory", host_memory);
  if (o.devices == 0) {
    refuse("--devices is 0, but must be at least 1");
  }
  check_data(o);
  check_training(o);
  check_parts(o);
  check_outputs(o);
  return o;
}

void join(Options& o, roundpipe::AnyProcessGroup group) {
  o.group = std::move(group);
  check_cut(o);
  if (o.group.rank() > 0) {
    o.quiet = true;
    o.json.clear();
    o.trace.clear();
  }
}

}  // namespace finetune
