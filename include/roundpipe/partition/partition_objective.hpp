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

/// The time of a stage of \p layers for one micro-batch, in seconds: a forward stage runs their
/// forward, a backward stage recomputes and runs their backward. The backward stage that holds the
/// last layer is the fused one: it runs their forward for the first time.
/// \throws Error (invalid_argument) when \p costs has no such layers.
[[nodiscard]] double stage_seconds(std::span<LayerCost const> costs,
                                   StageDirection direction,
                                   LayerRange layers);

/// t_max: the time of the slowest stage for one micro-batch, in seconds.
/// \throws Error (invalid_argument) when \p costs lacks a layer of \p partition.
[[nodiscard]] double slowest_stage_seconds(std::span<LayerCost const> costs,
                                           Partition const& partition);

/// (M S + N (N - 1)) t_max: the device seconds of a call, idle ones included, when every stage
/// takes as long as the slowest; a call then lasts an N-th of it (RoundPipe, arXiv:2604.27085).
/// \throws Error (invalid_argument) when \p problem lacks a layer of \p partition.
[[nodiscard]] double objective(PartitionProblem const& problem, Partition const& partition);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/partition_objective.ipp>
#endif
