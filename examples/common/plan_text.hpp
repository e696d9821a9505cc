// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A pipeline's plan, for people: which layers run where, each decision with its
/// reason, and the use of memory.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <cstddef>
#include <string>

namespace examples {

/// Of master copies, optimizer and gradients. 0 for no parameters.
[[nodiscard]] double bytes_per_parameter(roundpipe::Bytes state_bytes, std::size_t parameters);

/// Prints \p plan of a pipeline with \p options on \p devices devices, whose cut \p automatic
/// describes if that was chosen, and is empty if it was not.
void print_plan(roundpipe::PipelinePlan const& plan,
                roundpipe::PipelineOptions const& options,
                std::size_t devices,
                std::string const& automatic);

}  // namespace examples
