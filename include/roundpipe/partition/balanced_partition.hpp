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
[[nodiscard]] constexpr double place_seconds(LayerCost const& cost, bool fused) noexcept {
  return (fused ? 0 : seconds_of(layer_passes(StageKind::forward), cost)) +
         seconds_of(layer_passes(backward_kind(!fused)), cost);
}

/// \brief The partition into \p stages stages, each bound to a device with its forward,
/// recomputation and backward, whose slowest stage is fastest: what schedules other than round
/// robin are compared with fairly. Exact, in O(stages * layers^2).
///
/// With \p fused, the last stage recomputes nothing, and `forward` holds all stages but it; else
/// `forward` covers all layers. `backward` mirrors the stages in either case. Of the partitions
/// with the same slowest stage it takes the most even one (the least sum of squared times), with
/// longer stages last. Where there are more stages than layers, those that are too many have no
/// layers and come last, but for a fused one, which saves the more the longer it is.
///
/// `problem.fits`, where it is set, is asked for both directions of a stage that has layers, for
/// the fused one as a backward stage alone. Devices and micro-batches of \p problem do not matter.
/// \throws Error (invalid_argument) for no layers or stages, or a cost that is negative or not
///         finite; (over_budget) when no such stages fit.
[[nodiscard]] Partition balanced_partition(PartitionProblem const& problem,
                                           std::size_t stages,
                                           bool fused);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/balanced_partition.ipp>
#endif
