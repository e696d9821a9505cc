// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Trains on one GPU and measures: the part of plain_loop for nvcc.

#include <plain_loop/options.hpp>
#include <plain_loop/outcome.hpp>
#include <roundpipe/nn/transformer_config.hpp>

namespace plain_loop {

/// \throws roundpipe::Error as \ref roundpipe::cu::CudaBackend, and (not_finite) for a loss that is
/// NaN or infinite.
[[nodiscard]] Outcome run(Options const& o, roundpipe::nn::TransformerConfig const& config);

}  // namespace plain_loop
