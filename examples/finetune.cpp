// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Trains the weights of a checkpoint folder further: all of them, or low-rank adapters.
/// `finetune --help` lists the options. Under mpirun, ranks share the batch.

#include <common/output_file.hpp>
#include <common/rank_options.hpp>
#include <common/run_program.hpp>
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/system/host_memory_limit.hpp>
#include <roundpipe/trace/chrome_trace.hpp>

#include <optional>
#include <utility>

#ifdef ROUNDPIPE_HAS_MPI
#  include <roundpipe/mpi/mpi_group.hpp>
#  include <roundpipe/mpi/mpi_launch.hpp>
#endif

#include "finetune/job.hpp"
#include "finetune/options.hpp"
#include "finetune/report.hpp"
#include "finetune/run_cuda.hpp"
#include "finetune/training.hpp"

namespace {

using namespace finetune;

/// Trains on emulated devices.
rp::Timeline run_host(Options const& o, Job& job, Outcome& outcome) {
  rp::HostBackendOptions devices;
  devices.devices = o.devices.value_or(1);
  devices.device_memory_bytes = o.device_memory > 0 ? o.device_memory : rp::host_memory_limit();
  rp::HostBackend backend(std::move(devices));
  return run_pipeline<rp::nn::HostOps<float>>(backend, o, job, 1e12 * o.peak_tflops, outcome);
}

void run(Options o) {
#ifdef ROUNDPIPE_HAS_MPI
  std::optional<rp::MpiGroup> ranks;
  if (rp::is_under_mpirun()) {
    join(o, ranks.emplace());
    o.local_rank = rp::local_rank();
    o.local_ranks = rp::local_size();
  }
#endif
  if (o.backend.empty()) {
    o.backend = cuda_devices() > 0 ? "cuda" : "host";
  }
  examples::check_network(o.network, o.backend);
  auto job = prepare(o);
  std::optional<examples::OutputFile> json;
  std::optional<examples::OutputFile> trace;
  if (!o.json.empty()) {
    json.emplace(o.json);
  }
  if (!o.trace.empty()) {
    trace.emplace(o.trace);
  }
  if (!o.quiet) {
    print_job(job, o);
  }
  Outcome outcome;
  auto const timeline = o.backend == "cuda" ? run_cuda(o, job, outcome) : run_host(o, job, outcome);
  if (!o.quiet) {
    print_outcome(job, outcome);
  }
  if (json) {
    write_json(json->stream(), job, o, outcome);
    json->commit();
  }
  if (trace) {
    rp::write_chrome_trace(timeline, trace->stream());
    trace->commit();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("finetune", parse_options, run, argc, argv);
}
