// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The times of layers, from measurements of the running pipeline.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace roundpipe {

/// The costs of all layers, refitted: what each layer's forward, recomputation and backward take in
/// \p timeline in the mean over the micro-batches of a round. A round's first micro-batch, its last
/// one and the others each count with the median over devices and calls: the first clears sums of
/// gradients, the last one rounds them, and a disturbance of a few tasks must not disturb the plan.
/// \ref LayerCost::round_s, which backwards contain, and unmeasured times stay as in \p known.
/// A layer of the fused stage is not recomputed: its forward is refitted, and recomputation times
/// in \p known change by the same factor, as do those of save levels that nobody finds. Updates are
/// not refitted.
/// \throws Error (invalid_argument) when \p timeline has a layer that \p known does not have.
[[nodiscard]] std::vector<LayerCost> fit_costs(std::span<LayerCost const> known,
                                               Timeline const& timeline);

/// How fast each device of \p timeline was beside the medians of all, which \ref fit_costs gives:
/// in its passes these medians together, over the medians of its own times. 1 for a device without
/// passes. Devices of one kind differ by a few percent where a power limit holds their clocks, and
/// the slowest one tells how long a round takes.
[[nodiscard]] std::vector<double> fit_device_speeds(Timeline const& timeline);

/// The optimizer-step seconds of each of \p blocks blocks: the median over \p timeline, 0 for
/// blocks without a step. \throws Error (invalid_argument) when \p timeline updates a block beyond
/// \p blocks.
[[nodiscard]] std::vector<double> fit_step_seconds(std::size_t blocks, Timeline const& timeline);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/bubble/impl/cost_fit.ipp>
#endif
