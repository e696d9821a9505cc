// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "options.hpp"

#include <common/command_line.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>

namespace train_throughput {

namespace {

using examples::refuse;

void complete(Options& o) {
  if (o.context < 1 || o.batch < 1 || o.layers < 0 || o.loss_chunk < 1) {
    refuse("--context, --batch and --loss-chunk must be positive, --layers not negative");
  }
  if (o.devices == 0 || o.steps == 0 || o.warmup == 0) {
    refuse("--devices, --steps and --warmup must be at least 1");
  }
  if (o.micro_batches_per_round > 0 && o.rounds == 0) {
    o.rounds = 1;
  }
  if (o.offload.value_or(0) > o.micro_batches_per_round) {
    refuse("--offload must be at most --micro-batches");
  }
  auto const micro_batches = static_cast<std::int64_t>(
      std::max<std::size_t>(o.micro_batches_per_round, 1) * std::max<std::size_t>(o.rounds, 1));
  if (o.batch % micro_batches != 0) {
    refuse("--batch is " + std::to_string(o.batch) + ", but must be a multiple of the " +
           std::to_string(micro_batches) + " micro-batches of an iteration");
  }
  if (o.peak_tflops < 0) {
    refuse("--peak-tflops must not be negative");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  std::string memory = "24GiB";
  CLI::App app{
      "Trains a transformer of a given shape on random tokens and reports its throughput.\n"
      "Weights, gradients, optimizer states and activations live in host memory.\n",
      "train_throughput"};
  app.get_formatter()->column_width(30);
  auto const add = [&](char const* name, auto& value, char const* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
  add("--shape", o.shape, "qwen3-1.7b, llama3.1-8b, qwen3-32b, or a config.json of that kind");
  add("--layers", o.layers, "Transformer blocks; 0: the shape's number");
  add("--devices", o.devices, "GPUs");
  add("--context", o.context, "Tokens in a sequence");
  add("--batch", o.batch, "Sequences in an iteration");
  add("--micro-batches",
      o.micro_batches_per_round,
      "Micro-batches in a round; 0: as the forecast chooses");
  add("--rounds",
      o.rounds,
      "Rounds in an iteration; 0: as the forecast chooses, but 1 with --micro-batches");
  add("--checkpoints",
      o.checkpoints,
      "Boundaries that the host keeps: between stages, or behind every layer")
      ->check(CLI::IsMember({"auto", "stages", "layers"}));
  app.add_option("--offload",
                 o.offload,
                 "Micro-batches of a round whose saved activations are offloaded, not recomputed; "
                 "by default as the forecast chooses");
  add("--device-memory", memory, "Budget of each GPU, whatever the card's memory")
      ->type_name("SIZE");
  add("--steps", o.steps, "Measured iterations");
  add("--warmup", o.warmup, "Iterations before the measured ones");
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
      "Stages by simulation, by the least bound, or with equal numbers of layers")
      ->check(CLI::IsMember({"auto", "bound", "uniform"}));
  add("--peak-tflops", o.peak_tflops, "Peak of one GPU, for the MFU; 0: measure a matrix product");
  add("--loss-chunk", o.loss_chunk, "Positions whose logits exist at a time");
  add("--json", o.json, "Write the report there; -: to the standard output")->type_name("FILE");
  add("--trace", o.trace, "Write the timeline of the last iterations there")->type_name("FILE");
  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.device_memory = examples::bytes_of("--device-memory", memory);
  complete(o);
  return o;
}

}  // namespace train_throughput
