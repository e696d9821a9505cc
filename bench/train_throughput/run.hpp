// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Trains on GPUs and measures: the part of train_throughput for nvcc.

#include <roundpipe/nn/transformer_config.hpp>

#include "options.hpp"
#include "outcome.hpp"

namespace train_throughput {

/// \throws roundpipe::Error as \ref roundpipe::cu::CudaBackend and \ref roundpipe::Pipeline.
[[nodiscard]] Outcome run(Options const& o, roundpipe::nn::TransformerConfig const& config);

}  // namespace train_throughput
