// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A model as the planner sees it when the saves of some micro-batches are offloaded.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/offloaded_saves.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/plan/plan_options.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe::detail {

/// What follows from the choice of how many micro-batches' saves are offloaded.
struct OffloadingChoice {
  /// Layers that save nothing for their backward offload nothing.
  /// \throws Error (invalid_argument) when \p count is more than a round has.
  OffloadingChoice(ModelDescription const& model,
                   ParameterBlocks const& blocks,
                   CostModel const& known,
                   PlanOptions const& options,
                   std::size_t count);

  OffloadedSaves saves;
  StageBudget sizes;
  /// On average over a round's micro-batches: what is offloaded is not recomputed.
  std::vector<LayerCost> costs;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/offloading_choice.ipp>
#endif
