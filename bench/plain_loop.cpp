// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief How fast do the layers of train_throughput train without a pipeline? `plain_loop --help`
/// lists the options.

#include <common/run_program.hpp>
#include <plain_loop/options.hpp>
#include <plain_loop/outcome.hpp>
#include <plain_loop/run.hpp>
#include <roundpipe/core/dtype.hpp>
#include <throughput/json_output.hpp>

#include <iostream>

namespace {

using namespace plain_loop;

void run_and_report(Options const& o) {
  auto const config = throughput::config_of(o, roundpipe::DType::bf16);
  throughput::JsonOutput json(o.json);
  auto const outcome = run(o, config);
  if (!json.to_standard_output()) {
    print(std::cout, o, config, outcome);
  }
  json.write(to_json(o, config, outcome));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("plain_loop", parse_options, run_and_report, argc, argv);
}
