// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The times of layers, taken from what was measured while the pipeline ran.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace roundpipe {

namespace detail {

/// The median of \p values, which it reorders; nothing when there are none.
[[nodiscard]] std::optional<double> median(std::vector<double>& values);

}  // namespace detail

/// The costs of all layers, refitted: the median over devices, calls and micro-batches of what
/// \p timeline says that a layer's forward, recomputation and backward took; of what it does not
/// say, what \p known says. Medians, so that what disturbs few of many tasks disturbs no plan.
///
/// A layer of the fused stage is not recomputed: its forward is refitted, and where \p known has a
/// time of recomputation, that changes by the same factor. Updates are not refitted.
/// \throws Error (invalid_argument) when \p timeline has a layer that \p known has not.
[[nodiscard]] std::vector<LayerCost> fit_costs(std::span<LayerCost const> known,
                                               Timeline const& timeline);

/// The seconds of each of \p blocks blocks' optimizer step: the median over \p timeline, 0 of
/// blocks that it does not update. \throws Error (invalid_argument) when it updates a block beyond
/// them.
[[nodiscard]] std::vector<double> fit_step_seconds(std::size_t blocks, Timeline const& timeline);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/bubble/impl/cost_fit.ipp>
#endif
