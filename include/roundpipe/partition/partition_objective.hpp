// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long stages take, and what a good partition makes small.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <span>

namespace roundpipe {

/// The time of all passes of a stage of \p layers for one micro-batch, in seconds. The backward
/// stage that holds the last layer is the fused one.
/// \throws Error (invalid_argument) when \p costs has no such layers.
[[nodiscard]] double stage_seconds(std::span<LayerCost const> costs,
                                   StageDirection direction,
                                   LayerRange layers);

/// t_max: the time of the slowest stage for one micro-batch, in seconds.
/// \throws Error (invalid_argument) when \p costs lacks a layer of \p partition.
[[nodiscard]] double slowest_stage_seconds(std::span<LayerCost const> costs,
                                           Partition const& partition);

/// (M S + N (N - 1)) t_max: the device seconds of a call, idle time included, if every stage took
/// as long as the slowest. A call then lasts an N-th of that (RoundPipe, arXiv:2604.27085).
/// \throws Error (invalid_argument) when \p problem lacks a layer of \p partition.
[[nodiscard]] double objective(PartitionProblem const& problem, Partition const& partition);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/partition_objective.ipp>
#endif
