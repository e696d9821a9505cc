// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <throughput/workload.hpp>

#include <common/command_line.hpp>
#include <common/named_shapes.hpp>
#include <throughput/shapes.hpp>

#include <CLI/CLI.hpp>

namespace throughput {

void add_options(CLI::App& app, Workload& workload) {
  auto const add = [&](char const* name, auto& value, char const* help) {
    app.add_option(name, value, help)->capture_default_str();
  };
  add("--shape",
      workload.shape,
      ("One of " + examples::shape_names() + ", or the config.json of a checkpoint").c_str());
  add("--layers", workload.layers, "Transformer blocks; 0: the shape's number");
  add("--context", workload.context, "Tokens in a sequence");
  add("--batch", workload.batch, "Sequences in an iteration");
  add("--loss-chunk", workload.loss_chunk, "Positions whose logits exist at a time");
  add("--steps", workload.steps, "Measured iterations");
  add("--warmup", workload.warmup, "Iterations before the measured ones");
  add("--peak-tflops",
      workload.peak_tflops,
      "Peak of one GPU, for the MFU; 0: measure a matrix product");
}

void check(Workload const& workload) {
  if (workload.context < 1 || workload.batch < 1 || workload.layers < 0 ||
      workload.loss_chunk < 1) {
    examples::refuse("--context, --batch and --loss-chunk must be positive, --layers not negative");
  }
  if (workload.steps == 0 || workload.warmup == 0) {
    examples::refuse("--steps and --warmup must be at least 1");
  }
  if (workload.peak_tflops < 0) {
    examples::refuse("--peak-tflops must not be negative");
  }
}

roundpipe::nn::TransformerConfig config_of(Workload const& workload, roundpipe::DType type) {
  auto config = find_shape(workload.shape);
  if (workload.layers > 0) {
    config.layers = workload.layers;
  }
  config.storage = config.parameter = type;
  config.loss_chunk = workload.loss_chunk;
  return config.resolved();
}

}  // namespace throughput
