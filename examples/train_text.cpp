// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Trains a byte-level transformer on text. Weights, gradients and optimizer states live on
/// the host; devices (emulated ones, or GPUs) only compute. `train_text --help` lists the options.
/// Under mpirun, ranks share the batch.

#include <common/output_file.hpp>
#include <common/precision.hpp>
#include <common/run_program.hpp>
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#ifdef ROUNDPIPE_HAS_MPI
#  include <roundpipe/mpi/mpi_group.hpp>
#  include <roundpipe/mpi/mpi_launch.hpp>
#endif

#include "train_text/chosen_optimizer.hpp"
#include "train_text/entropy.hpp"
#include "train_text/options.hpp"
#include "train_text/report.hpp"
#include "train_text/run_cuda.hpp"
#include "train_text/text.hpp"
#include "train_text/training.hpp"

namespace {

using namespace train_text;
using Ops = rp::nn::HostOps<float>;

Text read_text(Options const& o) {
  Text text;
  for (auto const& path : o.data) {
    text.corpus.add(path);
  }
  if (o.data.empty()) {
    text.corpus.add_project(ROUNDPIPE_SOURCE_DIR);
  }
  text.window = static_cast<std::size_t>(o.context) + 1;
  text.split = split_text(text.corpus.text.size(), text.window);
  return text;
}

void describe_text(Text const& text, Outcome& outcome) {
  ByteCounts counts;
  outcome.files = text.corpus.files;
  for (auto const& range : text.split.training) {
    counts.add(text.corpus.view(range));
    outcome.training_bytes += range.size();
  }
  outcome.held_out_bytes = text.corpus.text.size() - outcome.training_bytes;
  outcome.unigram = counts.unigram_entropy();
  outcome.bigram = counts.bigram_entropy();
}

/// Trains in a plain loop.
void run_serial(Options const& o, Text const& text, Outcome& outcome) {
  rp::SerialTrainer trainer{
      rp::nn::transformer<Ops>(model_config(o)),
      ChosenOptimizer(o),
      rp::SerialOptions{
          .capacity = {o.rows(), o.context},
          .micro_batches_per_round = static_cast<std::size_t>(o.micro_batches_per_round),
          .rounds = static_cast<std::size_t>(o.rounds),
          .clip_norm = o.clip,
          .seed = static_cast<std::uint64_t>(o.seed),
          .staleness = event_protocol(o).staleness,
          .state_type = state_type(o),
          .loss_scale = loss_scale(o),
      }};
  train(trainer, o, text, outcome);
  assess(trainer, o, text, outcome);
}

/// Trains on emulated devices.
rp::Timeline run_host(Options& o, Text const& text, Outcome& outcome) {
  rp::HostBackendOptions devices;
  devices.devices = static_cast<std::size_t>(o.devices);
  devices.device_memory_bytes = o.device_memory;
  devices.link.upload_bytes_per_second = o.link_gbps * 1e9;
  devices.link.download_bytes_per_second = o.link_gbps * 1e9;
  rp::HostBackend backend(std::move(devices));
  return run_pipeline<Ops>(backend, o, text, outcome);
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
  if (o.backend == "cuda") {
    o.devices = cuda_devices(o);
  }
  auto const text = read_text(o);
  std::optional<examples::OutputFile> json;
  std::optional<examples::OutputFile> trace;
  if (!o.json.empty()) {
    json.emplace(o.json);
  }
  if (!o.trace.empty()) {
    trace.emplace(o.trace);
  }
  Outcome outcome;
  describe_text(text, outcome);
  if (!o.quiet) {
    print_text(outcome, o);
  }

  rp::Timeline timeline;
  if (o.serial) {
    run_serial(o, text, outcome);
  } else {
    timeline = o.backend == "cuda" ? run_cuda(o, text, outcome) : run_host(o, text, outcome);
  }
  if (!o.quiet) {
    print_outcome(outcome);
  }
  if (json) {
    write_json(json->stream(), o, outcome);
  }
  if (trace) {
    write_trace(trace->stream(), timeline);
  }
  for (auto* const file : {&json, &trace}) {
    if (*file) {
      (*file)->commit();
    }
  }
  if (!o.quiet) {
    print_files(o);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("train_text", parse_options, run, argc, argv);
}
