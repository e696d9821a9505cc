// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief How fast a transformer trains whose state lives in host memory. `train_throughput --help`
/// lists what can be chosen.

#include <roundpipe/core/error.hpp>
#include <roundpipe/trace/chrome_trace.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

#include "train_throughput/options.hpp"
#include "train_throughput/outcome.hpp"
#include "train_throughput/run.hpp"
#include "train_throughput/shapes.hpp"

namespace {

using namespace train_throughput;

/// \throws roundpipe::Error (invalid_argument) when \p path can not be written.
std::ofstream open(std::string const& path) {
  std::ofstream file(path);
  if (!file) {
    throw roundpipe::Error(roundpipe::Errc::invalid_argument, "'" + path + "' can not be written");
  }
  return file;
}

void run_and_report(Options const& o) {
  auto config = find_shape(o.shape);
  if (o.layers > 0) {
    config.layers = o.layers;
  }
  config = config.resolved();
  std::ofstream json;
  std::ofstream trace;
  if (!o.json.empty() && o.json != "-") {
    json = open(o.json);
  }
  if (!o.trace.empty()) {
    trace = open(o.trace);
  }
  auto const outcome = run(o, config);
  if (o.json == "-") {
    write_json(std::cout, o, config, outcome);
  } else {
    print(std::cout, o, config, outcome);
  }
  if (json.is_open()) {
    write_json(json, o, config, outcome);
  }
  if (trace.is_open()) {
    roundpipe::write_chrome_trace(outcome.timeline, trace);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (auto const options = parse_options(argc, argv)) {
      run_and_report(*options);
    }
    return 0;
  } catch (std::exception const& error) {
    std::string text = error.what();
    if (auto const* const known = dynamic_cast<roundpipe::Error const*>(&error)) {
      text = known->message();
    }
    fmt::print(stderr, "train_throughput: {}\n", text);
    return 2;
  }
}
