// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/offloaded_saves.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/plan/offloading_choice.hpp>
#include <roundpipe/plan/plan_options.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

[[nodiscard]] ROUNDPIPE_INLINE OffloadedSaves offload_each(ModelDescription const& model,
                                                           std::size_t count,
                                                           std::size_t micro_batches_per_round) {
  std::vector<std::size_t> counts;
  for (auto const& layer : model.layers) {
    counts.push_back(layer.footprint.saved_bytes > 0 && !layer.is_loss ? count : 0);
  }
  return {std::move(counts), micro_batches_per_round};
}

ROUNDPIPE_INLINE OffloadingChoice::OffloadingChoice(ModelDescription const& model,
                                                    ParameterBlocks const& blocks,
                                                    CostModel const& known,
                                                    PlanOptions const& options,
                                                    std::size_t count)
    : saves(offload_each(model, count, options.micro_batches_per_round)),
      sizes(model, blocks, saves),
      costs(average_costs(known.layers(), saves)) {}

}  // namespace detail

}  // namespace roundpipe
