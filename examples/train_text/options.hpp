// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The command line of train_text.

#include <common/precision.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/hosts/any_process_group.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace train_text {

using namespace roundpipe::literals;
using roundpipe::Bytes;

/// All options with their defaults.
struct Options : examples::PrecisionOptions {
  std::vector<std::string> data;  ///< Empty: the project's own sources and docs.

  std::int64_t layers = 4;
  std::int64_t hidden = 128;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t context = 128;
  bool tied = true;

  std::int64_t batch = 8;
  std::optional<std::int64_t> wanted_micro_batches;  ///< Default: 4, or as \ref automatic chooses.
  std::optional<std::int64_t> wanted_rounds;         ///< Default: 1, or as \ref automatic chooses.
  bool automatic = false;
  std::int64_t micro_batches_per_round = 4;  ///< Those in use, once all is chosen.
  std::int64_t rounds = 1;                   ///< The same.
  std::int64_t steps = 600;
  double seconds = 120;
  std::string optimizer = "adamw";
  std::optional<double> lr;  ///< Default: by optimizer.
  double dropout = 0;
  double clip = 1;
  std::int64_t seed = 1;
  bool serial = false;

  std::string backend = "host";
  std::optional<std::int64_t> wanted_devices;  ///< Default: 4 emulated ones, or all GPUs.
  std::int64_t devices = 4;                    ///< The devices in use.
  Bytes device_memory = 2_GiB;
  Bytes host_memory = 0;  ///< 0: what the process may take.
  double link_gbps = 0;
  std::int64_t optimizer_threads = 0;
  std::string cost_file;  ///< Empty: none.

  roundpipe::AnyProcessGroup group{};  ///< The ranks that mpirun has started, if any.
  std::size_t local_rank = 0;          ///< The number of this process on its host,
  std::size_t local_ranks = 1;         ///< and how many there are.
  std::string network = "mpi";         ///< What large messages of ranks go by.
  std::string deal = "equal";          ///< How rounds are dealt to ranks.

  std::string json;   ///< Empty: none.
  std::string trace;  ///< Empty: none.
  bool quiet = false;

  [[nodiscard]] double highest_rate() const { return lr.value_or(optimizer == "sgd" ? 0.1 : 2e-3); }
  /// Micro-batches in a call, of all ranks.
  [[nodiscard]] std::int64_t micro_batches_per_call() const {
    return micro_batches_per_round * rounds * static_cast<std::int64_t>(group.size());
  }
  /// Sequences in a micro-batch.
  [[nodiscard]] std::int64_t rows() const { return batch / micro_batches_per_call(); }
};

/// Lets \p o train with the ranks of \p group, of which rank 0 alone prints and writes.
/// \throws Error (invalid_argument) when the ranks cannot share the batch, and for options that are
///         for one process.
void join(Options& o, roundpipe::AnyProcessGroup group);

/// Reads and checks the command line. \returns nothing if the user asked for help, which it has
/// printed.
/// \throws roundpipe::Error (invalid_argument) for options that it cannot read or that make no
/// training.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace train_text
