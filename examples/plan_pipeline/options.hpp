// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The command line of plan_pipeline.

#include <roundpipe/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plan_pipeline {

/// The schedules by their names in the option, in the order of `all`.
[[nodiscard]] std::vector<std::string> const& known_schedules();

/// All options with their defaults.
struct Options {
  std::string costs;        ///< A file; or else a model shape.
  std::string model_shape;  ///< With hardware, context and micro-batch.
  std::string hardware;
  std::int64_t context = 2048;
  std::int64_t micro_batch = 4;  ///< In sequences.
  bool has_micro_batch = false;  ///< Whether the user has named it.

  std::size_t devices = 4;
  std::vector<double> device_speeds;                   ///< Empty: all 1.
  std::optional<roundpipe::Bytes> device_memory;       ///< Of the smallest device; none: no limit.
  std::size_t micro_batches_per_call = 8;              ///< In a call.
  std::optional<std::size_t> micro_batches_per_round;  ///< None: automatic.

  std::string schedule = "roundpipe";
  std::optional<std::size_t> stages_per_device;  ///< None: searched.
  std::vector<std::size_t> forward_stages;       ///< Layer counts; empty: planned.
  std::vector<std::size_t> backward_stages;
  std::string partition_by = "bound";
  std::optional<std::size_t> iterations;  ///< None: 1, asynchronous 12.
  bool asynchronous = false;
  bool recompute_waits_for_gradient = false;

  std::optional<std::int64_t> global_batch;     ///< In sequences: the library chooses all else.
  std::optional<std::size_t> rounds;            ///< None: the library chooses.
  std::optional<roundpipe::Bytes> host_memory;  ///< None: no limit.
  std::string states = "fp32";
  std::string frontier;                         ///< A file; empty: none.
  std::vector<std::size_t> hosts;               ///< Empty: one alone.
  std::vector<double> network_gbits{100, 400};  ///< 10^9 bits a second of a host's link.
  double network_latency_us = 5;                ///< Of a message.
  std::string scaling;                          ///< A file; empty: none.

  std::string json;  ///< Empty: none; "-": standard output.
  std::string svg;
  std::string trace;
};

/// Reads and checks the command line. \returns nothing if the user asked for help, which it has
/// printed.
/// \throws roundpipe::Error (invalid_argument), in one line, for options that it cannot read or
/// that make no sense.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace plan_pipeline
