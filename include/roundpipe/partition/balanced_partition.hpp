// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a model into stages that are bound to devices, forward and backward alike.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <cstddef>

namespace roundpipe {

/// The seconds of a layer on the device that its stage is bound to, for one micro-batch: as part of
/// a forward and a backward stage, or of the fused one alone.
[[nodiscard]] inline double place_seconds(LayerCost const& cost, bool fused) noexcept {
  return (fused ? 0 : seconds_of(layer_passes(StageKind::forward), cost)) +
         seconds_of(layer_passes(backward_kind(!fused)), cost);
}

/// \brief Cuts a model into \p stages stages, each bound to one device that runs its forward,
/// recomputation and backward, so that the slowest stage is as fast as can be. This makes schedules
/// that bind stages to devices comparable with round robin. Exact, in O(stages * layers^2).
///
/// With \p fused, the last stage recomputes nothing, and `forward` holds all stages but that one;
/// else `forward` covers all layers. `backward` mirrors the stages in either case. Of the
/// partitions with the same slowest stage the function takes the most even one (the least sum of
/// squared times), with longer stages last. With more stages than layers, the surplus stages have
/// no layers and come last; only a fused stage comes behind them and keeps its layers.
///
/// The function asks `problem.fits`, where it is set, about both directions of each stage that has
/// layers, and about a fused stage as a backward stage alone. It ignores devices and micro-batches.
/// \throws Error (invalid_argument) for no layers or stages, or a cost that is negative or not
///         finite; (over_budget) when no such stages fit.
[[nodiscard]] Partition balanced_partition(PartitionProblem const& problem,
                                           std::size_t stages,
                                           bool fused);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/balanced_partition.ipp>
#endif
