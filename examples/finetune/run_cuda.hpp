// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Training on GPUs: the part of finetune for nvcc, where there is one.

#include <roundpipe/graph/timeline.hpp>

#include <cstddef>

#include "job.hpp"
#include "options.hpp"
#include "report.hpp"

namespace finetune {

/// How many GPUs there are. 0 also in a build without CUDA, and without a driver.
[[nodiscard]] std::size_t cuda_devices() noexcept;

/// Trains on `o.devices` GPUs, or on all. \returns the timeline of the last iterations.
/// \throws roundpipe::Error (unsupported) in a build without CUDA; (invalid_argument) if there are
///         fewer GPUs; and as \ref run_pipeline does.
[[nodiscard]] roundpipe::Timeline run_cuda(Options const& o, Job& job, Outcome& outcome);

}  // namespace finetune
