// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_text.hpp"

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/runtime/explain.hpp>

#include <fmt/format.h>

namespace examples {

namespace {

/// "layers 0-2: token embedding, 2 x transformer block".
std::string layers_text(roundpipe::ModelDescription const& model, roundpipe::LayerRange range) {
  auto text = range.count == 1 ? fmt::format("layer {}: ", range.first)
                               : fmt::format("layers {}-{}: ", range.first, range.end() - 1);
  for (std::size_t i = range.first; i < range.end();) {
    auto const first = i;
    auto const& name = model.layers[first].name;
    while (i < range.end() && model.layers[i].name == name) {
      ++i;
    }
    text += first == range.first ? "" : ", ";
    text += i - first == 1 ? name : fmt::format("{} x {}", i - first, name);
  }
  return text;
}

}  // namespace

double bytes_per_parameter(roundpipe::Bytes state_bytes, std::size_t parameters) {
  return parameters == 0 ? 0 : static_cast<double>(state_bytes) / static_cast<double>(parameters);
}

void print_plan(roundpipe::PipelinePlan const& plan,
                roundpipe::PipelineOptions const& options,
                std::size_t devices,
                std::string const& automatic) {
  auto const& forward = plan.stages.partition.forward;
  auto const& backward = plan.stages.partition.backward;
  fmt::print(
      "model       {} parameters in {} layers\n", plan.blocks.parameter_count(), plan.model.size());
  if (!automatic.empty()) {
    fmt::print("chosen      {}\n", automatic);
  }
  fmt::print(
      "plan        {} slots a round, dealt to {} devices round robin; rounds a call: {}, "
      "micro-batches a round: {}\n",
      plan.stages.partition.size(),
      devices,
      roundpipe::plan_options(options).rounds,
      options.micro_batches_per_round);
  std::size_t slot = 0;
  auto const print_slot = [&](char const* kind, roundpipe::LayerRange layers) {
    fmt::print("  slot {:<4} {:<9} {}\n", slot++, kind, layers_text(plan.model, layers));
  };
  for (auto const& stage : forward) {
    print_slot("forward", stage);
  }
  for (auto const& stage : backward) {
    print_slot(&stage == &backward.front() ? "fused" : "backward", stage);
  }
  fmt::print("decisions\n");
  for (auto const& decision : roundpipe::explain(plan, options)) {
    fmt::print("  {}\n", to_string(decision));
  }
  using Space = roundpipe::LedgerLine::Space;
  auto const print_ledger = [&](Space space, std::string const& title) {
    fmt::print("{:<11} {} {}\n",
               space == Space::device ? "memory" : "",
               roundpipe::format_bytes(total_bytes(plan.ledger, space)),
               title);
    for (auto const& line : plan.ledger) {
      if (line.space == space && line.bytes > 0) {
        fmt::print("  {:>12}  {}\n", roundpipe::format_bytes(line.bytes), line.name);
      }
    }
  };
  print_ledger(
      Space::device,
      "on each device" + (options.device_memory > 0
                              ? ", of a budget of " + roundpipe::format_bytes(options.device_memory)
                              : ""));
  print_ledger(Space::host, "on the host");
  fmt::print("  {:>12.2f}  bytes a parameter of master copies, optimizer and gradients\n",
             bytes_per_parameter(plan.host.state_bytes, plan.blocks.parameter_count()));
}

}  // namespace examples
