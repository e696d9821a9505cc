// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A model as the planner sees it once a working set is chosen.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe::detail {

/// The working set that spares the most recomputation of the first \p layers layers, where the link
/// carries \p share of all that they save while they run forward, without stalls on a ring of \p
/// entries saves. Nothing is kept of other layers. \p costs say how long replays take.
[[nodiscard]] WorkingSet choose_saves(ModelDescription const& model,
                                      CostModel const& costs,
                                      std::size_t layers,
                                      double share,
                                      std::size_t entries,
                                      std::size_t micro_batches_per_round);

/// What follows from the choice of a working set.
struct WorkingSetChoice {
  WorkingSetChoice(ModelDescription const& model,
                   ParameterBlocks const& blocks,
                   CostModel const& known,
                   WorkingSet chosen);

  WorkingSet set;
  StageBudget sizes;
  std::vector<LayerCost> costs;  ///< \ref average_costs
  std::vector<LayerCost> least;  ///< \ref least_costs
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/working_set_choice.ipp>
#endif
