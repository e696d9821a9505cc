// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Working sets of a model, and what they spare.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/working_set.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// Every boundary is a checkpoint, and \p levels says by layer and micro-batch of a round what the
/// host keeps of saves. Those of the loss are not kept.
/// A layer that has no list, or an empty one, has level 0.
/// \throws Error (invalid_argument) when it names a layer or level that there is not, when a list
/// does
///         not have one entry for each micro-batch, or when a level keeps no more than the one
///         below.
[[nodiscard]] WorkingSet keep_levels(ModelDescription const& model,
                                     std::vector<std::vector<std::size_t>> const& levels,
                                     std::size_t micro_batches_per_round);

/// Every boundary is a checkpoint. Of \p count micro-batches of a round the host keeps all that
/// layers save, but for layers that save nothing and the loss. The micro-batches of a layer are
/// spread over the round as evenly as can be, and those of neighbouring layers are not the same, so
/// that the link has as much to carry in each window.
/// \throws Error (invalid_argument) when \p count is more than a round has.
[[nodiscard]] WorkingSet spread_saves(ModelDescription const& model,
                                      std::size_t count,
                                      std::size_t micro_batches_per_round);

/// \p costs of a micro-batch on average: the host keeps a part, and the rest is recomputed.
[[nodiscard]] std::vector<LayerCost> average_costs(std::span<LayerCost const> costs,
                                                   WorkingSet const& working_set);

/// The same, of each layer in the round that recomputes least of it.
[[nodiscard]] std::vector<LayerCost> least_costs(std::span<LayerCost const> costs,
                                                 WorkingSet const& working_set);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/kept_saves.ipp>
#endif
