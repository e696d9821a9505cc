// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The command line of train_throughput.

#include <roundpipe/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace train_throughput {

using roundpipe::Bytes;

/// All options with their defaults.
struct Options {
  std::string shape = "qwen3-1.7b";  ///< A name of \ref known_shapes, or a file.
  std::int64_t layers = 0;           ///< 0: the shape's.
  std::size_t devices = 1;
  std::int64_t context = 2048;
  std::int64_t batch = 64;                  ///< Sequences in an iteration.
  std::size_t micro_batches_per_round = 0;  ///< In a round; 0: as the forecast chooses.
  std::size_t rounds = 0;                   ///< 0: as the forecast chooses; 1 with micro-batches.
  std::string checkpoints = "auto";         ///< "stages", "layers", or as the forecast chooses.
  /// Micro-batches of a round whose saves are offloaded; none: as the forecast chooses.
  std::optional<std::size_t> offload;
  Bytes device_memory = Bytes{24} << 30;
  std::size_t steps = 6;   ///< Measured iterations.
  std::size_t warmup = 3;  ///< Iterations before them.
  std::string precision = "bf16";
  std::string states = "fp32";
  bool sync = false;
  std::string schedule = "roundpipe";
  std::string protocol = "event";
  std::string transfers = "planned";
  std::string partition = "auto";
  double peak_tflops = 0;  ///< Of one device, dense; 0: measure a matrix product.
  std::int64_t loss_chunk = 2048;
  std::string json;   ///< Empty: none; "-": standard output.
  std::string trace;  ///< Empty: none.

  /// Sequences in a micro-batch, once all is chosen.
  [[nodiscard]] std::int64_t rows() const noexcept {
    return batch / static_cast<std::int64_t>(micro_batches_per_round * rounds);
  }
};

/// Reads and checks the command line. \returns nothing if the user asked for help, which it has
/// printed.
/// \throws roundpipe::Error (invalid_argument) for options that it cannot read or that make no
/// training.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace train_throughput
