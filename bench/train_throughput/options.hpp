// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief What the command line of train_throughput says.

#include <roundpipe/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace train_throughput {

using roundpipe::Bytes;

/// Everything that can be chosen, with its default.
struct Options {
  std::string shape = "qwen3-1.7b";  ///< A name of \ref known_shapes, or a file.
  std::int64_t layers = 0;           ///< 0: the shape's.
  std::size_t devices = 1;
  std::int64_t context = 2048;
  std::int64_t batch = 64;  ///< Sequences of an iteration.
  std::size_t micro_batches_per_round =
      0;  ///< Of a round; 0: the batch in micro-batches of 16,384 tokens.
  std::size_t rounds = 1;
  Bytes device_memory = Bytes{24} << 30;
  std::size_t steps = 6;   ///< Measured iterations.
  std::size_t warmup = 3;  ///< Iterations before them.
  std::string precision = "bf16";
  bool sync = false;
  std::string schedule = "roundpipe";
  std::string protocol = "event";
  std::string transfers = "planned";
  std::string partition = "auto";
  double peak_tflops = 0;  ///< Of one device, dense; 0: a matrix product is measured.
  std::int64_t loss_chunk = 2048;
  std::string json;   ///< Empty: none; "-": standard output.
  std::string trace;  ///< Empty: none.

  /// Sequences of one micro-batch.
  [[nodiscard]] std::int64_t rows() const noexcept {
    return batch / static_cast<std::int64_t>(micro_batches_per_round * rounds);
  }
};

/// Reads and checks the command line. \returns nothing when it asked for help, which was printed.
/// \throws roundpipe::Error (invalid_argument) for what cannot be read or makes no training.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace train_throughput
