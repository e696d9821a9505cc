// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which stages fit into a device's memory; if too few do, how much memory would be enough.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/stage_memory.hpp>

#include <functional>
#include <string>

namespace roundpipe {

namespace detail {

/// Names the first layer that does not fit \p budget as a stage of its own, if there is one:
/// "layer 3 alone needs 17 bytes as a backward stage".
[[nodiscard]] std::string misfit(StageMemory const& memory, Bytes budget);

}  // namespace detail

/// What to give `PartitionProblem::fits`: whether \p budget bytes hold a stage.
/// \throws Error (over_budget) when no partition fits; the message names the first layer that does
///         not fit alone, its direction and bytes, and the least budget with which a partition
///         fits. (invalid_argument) for a model without layers.
[[nodiscard]] std::function<bool(StageDirection, LayerRange)> fits_within(StageMemory memory,
                                                                          Bytes budget);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/memory_limit.ipp>
#endif
