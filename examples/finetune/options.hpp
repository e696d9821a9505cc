// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The command line of finetune.

#include <common/precision.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/hosts/any_process_group.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace finetune {

using roundpipe::Bytes;

/// All options with their defaults. What is optional is chosen when it is not given.
struct Options : examples::PrecisionOptions {
  std::string model;
  std::vector<std::string> data;
  std::vector<double> data_weights;  ///< Empty: 1 each.
  std::string output;
  bool resume = false;

  std::optional<std::int64_t> steps;
  std::optional<double> epochs;
  std::int64_t batch = 16;
  std::optional<std::int64_t> micro_batches;  ///< In a round.
  std::optional<std::int64_t> rounds;         ///< Of each rank; 1 beside micro-batches.
  std::int64_t context = 0;                   ///< 0: chosen.
  std::string packing = "packed";
  std::optional<std::int64_t> held_out;  ///< One of so many rows; 0: none.
  std::int64_t evaluation_rows = 512;
  bool shuffles = true;

  double rate = 1e-5;
  std::string schedule = "constant";
  std::int64_t warmup = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip = 1;
  double dropout = 0;
  std::uint64_t seed = 1;

  std::int64_t lora_rank = 0;  ///< 0: no adapters, unless \ref adapter names some.
  double lora_alpha = 0;       ///< 0: the rank.
  double lora_dropout = 0;
  bool rslora = false;
  std::vector<std::string> lora_targets;  ///< Empty: all maps of blocks.
  std::string adapter;                    ///< Empty: none.
  bool merge = false;
  std::vector<std::string> freeze;  ///< Patterns of the checkpoint's names.

  std::int64_t save_every = 0;
  std::size_t keep = 2;
  std::int64_t stop_after = 0;  ///< 0: only at the end.
  std::int64_t evaluate_every = 0;
  std::string output_type = "as-model";

  std::string backend;  ///< Empty: chosen.
  std::optional<std::size_t> devices;
  Bytes device_memory = 0;  ///< 0: what the device has.
  Bytes host_memory = 0;    ///< 0: what the process may take.
  std::string wanted_precision = "as-model";
  double peak_tflops = 0;  ///< 0: measured, on GPUs alone.

  roundpipe::AnyProcessGroup group{};  ///< The ranks that mpirun has started, if any.
  std::size_t local_rank = 0;          ///< The number of this process on its host,
  std::size_t local_ranks = 1;         ///< and how many there are.
  std::string network = "mpi";         ///< What large messages of ranks go by.
  std::string deal = "equal";          ///< How rounds are dealt to ranks.

  std::string json;   ///< Empty: none.
  std::string trace;  ///< Empty: none.
  bool quiet = false;

  [[nodiscard]] bool has_adapters() const noexcept { return lora_rank > 0 || !adapter.empty(); }
  /// Whether the micro-batches of a round are to be chosen.
  [[nodiscard]] bool chooses_cut() const noexcept { return !micro_batches; }
};

/// Lets \p o train with the ranks of \p group, of which rank 0 alone prints and writes.
/// \throws roundpipe::Error (invalid_argument) when the ranks cannot share the batch.
void join(Options& o, roundpipe::AnyProcessGroup group);

/// Reads and checks the command line. \returns nothing if the user asked for help, which it has
/// printed.
/// \throws roundpipe::Error (invalid_argument) for options that it cannot read or that make no
///         training.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace finetune
