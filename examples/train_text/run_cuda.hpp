// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Training on GPUs: the part of train_text for nvcc, where there is one.

#include <roundpipe/graph/timeline.hpp>

#include <cstdint>

#include "options.hpp"
#include "report.hpp"
#include "text.hpp"

namespace train_text {

/// The number of GPUs to use: as many as the options name, or all that other ranks leave.
/// \throws roundpipe::Error (unsupported) in a build without CUDA, (no such device) without a GPU
///         or a driver, (invalid_argument) if there are fewer.
[[nodiscard]] std::int64_t cuda_devices(Options const& o);

/// Trains through the pipeline. Sets micro-batches and rounds of \p o if they are to be chosen.
/// \returns the timeline of the last iterations.
/// \throws roundpipe::Error as \ref cuda_devices and the pipeline do.
[[nodiscard]] roundpipe::Timeline run_cuda(Options& o, Text const& text, Outcome& outcome);

}  // namespace train_text
