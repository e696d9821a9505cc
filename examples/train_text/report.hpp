// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The plan and the outcome of a training, for people and as JSON.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/runtime/pipeline.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <ostream>
#include <string>
#include <vector>

#include "options.hpp"

namespace train_text {

/// The results of a training.
struct Outcome {
  std::size_t files = 0;
  std::size_t training_bytes = 0;
  std::size_t held_out_bytes = 0;
  double unigram = 0;  ///< Entropy of the training text, in nats per byte; so are the next two.
  double bigram = 0;
  double validation = 0;
  std::size_t validated_bytes = 0;

  std::vector<double> losses;  ///< One for each step.
  double seconds = 0;          ///< Of all steps, including the optimizer's last work.
  double cpu_seconds = 0;      ///< The time of CPUs meanwhile, of all threads.
  double tokens_per_second = 0;
  double iteration_s = 0;  ///< The mean, without the first iterations.
  std::uint64_t weights_digest = 0;
  std::string prompt;
  std::string continuation;

  // Only of the pipeline:
  std::string automatic;             ///< What --auto chose, and what came next; else empty.
  double predicted_iteration_s = 0;  ///< By simulation, from the layers' times and the links.
  std::vector<std::size_t> forward_stages;   ///< Layer counts, in execution order.
  std::vector<std::size_t> backward_stages;  ///< The same; the first is fused.
  std::vector<double> device_busy;           ///< For each device, a share in [0, 1].
  roundpipe::Bytes device_bytes_peak = 0;    ///< Of the device that needs most.
  roundpipe::Bytes host_bytes_peak = 0;
  std::size_t parameters = 0;
  roundpipe::Bytes state_bytes = 0;  ///< Of master copies, optimizer arrays, and gradients.
  std::vector<roundpipe::LedgerLine> ledger;
};

/// Prints the data of the training.
void print_text(Outcome const& outcome, Options const& o);

/// Prints the results of the training, including a sample.
void print_outcome(Outcome const& outcome);

/// Prints the names of the files that were written.
void print_files(Options const& o);

/// The report as JSON. `weights_digest` is a hexadecimal string. With `--serial` the stages and the
/// ledger are empty lists, and `devices`, `parameters` and all bytes of memory are 0. Bytes of the
/// sample that are not UTF-8 are replaced.
void write_json(std::ostream& out, Options const& o, Outcome const& outcome);

/// The timeline, for Perfetto or chrome://tracing.
void write_trace(std::ostream& out, roundpipe::Timeline const& timeline);

}  // namespace train_text
