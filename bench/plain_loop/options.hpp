// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The command line of plain_loop.

#include <throughput/workload.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace plain_loop {

using throughput::Bytes;

struct Options : throughput::Workload {
  std::int64_t rows = 8;   ///< Sequences in a micro-batch.
  bool copies = true;      ///< Whether gradients go down and weights come up.
  bool optimizer = false;  ///< Whether the host updates the weights in between.
  std::string json;        ///< Empty: none; "-": standard output.

  [[nodiscard]] std::size_t micro_batches() const noexcept {
    return static_cast<std::size_t>(batch / rows);
  }
};

/// Reads and checks the command line. \returns nothing if the user asked for help, which it has
/// printed.
/// \throws roundpipe::Error (invalid_argument) for options that it cannot read or that make no
/// training.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace plain_loop
