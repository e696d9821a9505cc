// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief How fast does a transformer train whose state lives in host memory? `train_throughput
/// --help` lists the options. Under mpirun, ranks share the batch.

#include <common/gpu_network.hpp>
#include <common/output_file.hpp>
#include <common/run_program.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/trace/chrome_trace.hpp>
#include <throughput/json_output.hpp>
#include <train_throughput/options.hpp>
#include <train_throughput/outcome.hpp>
#include <train_throughput/run.hpp>

#include <iostream>
#include <optional>

#ifdef ROUNDPIPE_HAS_MPI
#  include <roundpipe/mpi/mpi_group.hpp>
#  include <roundpipe/mpi/mpi_launch.hpp>
#endif

namespace {

using namespace train_throughput;

void run_and_report(Options o) {
#ifdef ROUNDPIPE_HAS_MPI
  std::optional<roundpipe::MpiGroup> ranks;
  if (roundpipe::is_under_mpirun()) {
    join(o, ranks.emplace(), roundpipe::local_rank());
  }
#endif
  examples::GpuNetwork const network(
      o.network, o.group, roundpipe::DeviceId(static_cast<int>(o.first_device)));
  o.group = network.group();
  auto const config = config_of(o);
  throughput::JsonOutput json(o.json);
  std::optional<examples::OutputFile> trace;
  if (!o.trace.empty()) {
    trace.emplace(o.trace);
  }
  auto const outcome = run(o, config, {}, [&](Outcome const& planned) {
    if (o.group.rank() == 0 && !json.to_standard_output()) {
      print_plan(std::cout, o, config, planned);
      std::cout << std::flush;
    }
  });
  if (o.group.rank() > 0) {
    return;
  }
  if (!json.to_standard_output()) {
    print(std::cout, o, config, outcome);
  }
  json.write(to_json(o, config, outcome));
  if (trace) {
    roundpipe::write_chrome_trace(outcome.timeline, trace->stream());
    trace->commit();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("train_throughput", parse_options, run_and_report, argc, argv);
}
