// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Trains on GPUs and measures: the part of train_throughput for nvcc.

#include <roundpipe/nn/transformer_config.hpp>

#include "options.hpp"
#include "outcome.hpp"

namespace train_throughput {

/// Sets micro-batches and rounds of \p o where they are 0.
/// \throws roundpipe::Error as \ref roundpipe::cu::CudaBackend, \ref roundpipe::automatic and \ref
/// roundpipe::Pipeline.
[[nodiscard]] Outcome run(Options& o, roundpipe::nn::TransformerConfig const& config);

}  // namespace train_throughput
