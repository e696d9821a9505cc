// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief What the programs that measure throughput train, and for how long.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace throughput {

using roundpipe::Bytes;

/// The options that all these programs have.
struct Workload {
  std::string shape = "qwen3-1.7b";  ///< A name of \ref examples::named_shapes, or a file.
  std::int64_t layers = 0;           ///< 0: the shape's.
  std::int64_t context = 2048;
  std::int64_t batch = 64;  ///< Sequences in an iteration.
  std::int64_t loss_chunk = 2048;
  std::size_t steps = 6;   ///< Measured iterations.
  std::size_t warmup = 3;  ///< Iterations before them.
  double peak_tflops = 0;  ///< Of one device, dense; 0: measure a matrix product.

  /// In an iteration.
  [[nodiscard]] double tokens() const noexcept { return static_cast<double>(batch * context); }
};

/// Adds the options to \p app, which writes them to \p workload. Both must live while it parses.
void add_options(CLI::App& app, Workload& workload);

/// \throws roundpipe::Error (invalid_argument) for options that make no training.
void check(Workload const& workload);

/// The constants of the model, with parameters and boundaries of \p type.
/// \throws roundpipe::Error (invalid_argument) as \ref find_shape.
[[nodiscard]] roundpipe::nn::TransformerConfig config_of(Workload const& workload,
                                                         roundpipe::DType type);

}  // namespace throughput
