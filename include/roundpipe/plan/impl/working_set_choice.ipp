// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/level_policy.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE WorkingSet choose_saves(ModelDescription const& model,
                                         CostModel const& costs,
                                         std::size_t layers,
                                         double share,
                                         std::size_t entries,
                                         std::size_t micro_batches_per_round) {
  double compute_s = 0;
  double saved_bytes = 0;
  for (std::size_t i = 0; i < layers; ++i) {
    compute_s += costs.layers()[i].forward_s;
    saved_bytes += static_cast<double>(model.layers[i].save_levels.back());
  }
  if (compute_s <= 0 || saved_bytes <= 0) {
    return keep_levels(model, {}, micro_batches_per_round);
  }
  constexpr double ticks_a_layer = 64;
  auto const ticks_per_s = ticks_a_layer * static_cast<double>(layers) / compute_s;
  auto const ticks_per_byte = compute_s / saved_bytes / share * ticks_per_s;
  std::vector<SaveCandidate> of_micro_batch(layers);
  for (std::size_t i = 0; i < layers; ++i) {
    auto const& cost = costs.layers()[i];
    auto const& bytes = model.layers[i].save_levels;
    auto& candidate = of_micro_batch[i];
    candidate.compute = std::llround(cost.forward_s * ticks_per_s);
    for (std::size_t l = 1; l < bytes.size(); ++l) {
      auto const left_s = l + 1 < bytes.size() ? cost.replaying_s(l) : 0;
      candidate.levels.push_back(
          {.transfer = std::llround(static_cast<double>(bytes[l]) * ticks_per_byte),
           .spared = std::llround((cost.replaying_s(0) - left_s) * ticks_per_s * ticks_a_layer)});
    }
  }
  std::vector<SaveCandidate> candidates;
  for (std::size_t m = 0; m < micro_batches_per_round; ++m) {
    candidates.insert(candidates.end(), of_micro_batch.begin(), of_micro_batch.end());
  }
  limit_lag(candidates, entries);
  auto const chosen = choose_levels(candidates);
  std::vector<std::vector<std::size_t>> levels(layers);
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    levels[c % layers].push_back(chosen[c]);
  }
  return keep_levels(model, levels, micro_batches_per_round);
}

ROUNDPIPE_INLINE WorkingSetChoice::WorkingSetChoice(ModelDescription const& model,
                                                    ParameterBlocks const& blocks,
                                                    CostModel const& known,
                                                    WorkingSet chosen)
    : set(std::move(chosen)),
      sizes(model, blocks, set),
      costs(average_costs(known.layers(), set)),
      least(least_costs(known.layers(), set)) {}

}  // namespace detail

}  // namespace roundpipe
