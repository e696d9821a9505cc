// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What came of a training, for people and as JSON.

#include <roundpipe/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "curve.hpp"
#include "job.hpp"
#include "options.hpp"

namespace finetune {

/// The results of a training.
struct Outcome {
  LossCurve curve;
  std::int64_t steps_before = 0;          ///< Those of \c curve that earlier processes did.
  bool stopped = false;                   ///< Ended by the user before all steps were done.
  std::optional<double> evaluation_loss;  ///< Of the weights as they are written.

  double seconds = 0;            ///< Of this process's steps.
  double tokens_per_second = 0;  ///< Without the first steps, evaluations and waits for snapshots.
  double mfu = 0;                ///< 0: the peak of the devices is not known.
  double load_seconds = 0;       ///< Of reading the weights.
  /// By which the process has grown from the plan to the loaded weights, emulated devices included.
  roundpipe::Bytes resident_growth = 0;
  std::string automatic;  ///< The cut that was chosen, and what came next; else empty.
  std::int64_t micro_batches = 0;
  std::int64_t rounds = 0;
  std::size_t devices = 0;
  roundpipe::Bytes device_bytes_peak = 0;  ///< Of the device that needs most.
  roundpipe::Bytes host_bytes_peak = 0;
  roundpipe::Bytes state_bytes = 0;  ///< Of master copies, optimizer arrays, and gradients.
  std::size_t parameters = 0;
  std::size_t trained_parameters = 0;
  std::uint64_t data_stalls = 0;  ///< How often the training waited for data.
};

/// Prints what will be trained on.
void print_job(Job const& job, Options const& o);
/// Prints the results.
void print_outcome(Job const& job, Outcome const& outcome);

/// Writes loss.csv and loss.svg to the output folder, in place of older ones.
void write_curve(Job const& job, LossCurve const& curve);
/// The report as JSON.
void write_json(std::ostream& out, Job const& job, Options const& o, Outcome const& outcome);

}  // namespace finetune
