// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief How fast does a transformer train whose state lives in host memory? `train_throughput
/// --help` lists the options.

#include <common/output_file.hpp>
#include <common/run_program.hpp>
#include <roundpipe/trace/chrome_trace.hpp>

#include <iostream>
#include <optional>

#include "train_throughput/options.hpp"
#include "train_throughput/outcome.hpp"
#include "train_throughput/run.hpp"
#include "train_throughput/shapes.hpp"

namespace {

using namespace train_throughput;

void run_and_report(Options o) {
  auto config = find_shape(o.shape);
  if (o.layers > 0) {
    config.layers = o.layers;
  }
  config = config.resolved();
  std::optional<examples::OutputFile> json;
  std::optional<examples::OutputFile> trace;
  if (!o.json.empty() && o.json != "-") {
    json.emplace(o.json);
  }
  if (!o.trace.empty()) {
    trace.emplace(o.trace);
  }
  auto const outcome = run(o, config);
  if (o.json == "-") {
    write_json(std::cout, o, config, outcome);
  } else {
    print(std::cout, o, config, outcome);
  }
  if (json) {
    write_json(json->stream(), o, config, outcome);
    json->commit();
  }
  if (trace) {
    roundpipe::write_chrome_trace(outcome.timeline, trace->stream());
    trace->commit();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("train_throughput", parse_options, run_and_report, argc, argv);
}
