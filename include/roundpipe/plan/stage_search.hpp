// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Searches for the stages that fit a budget and are fastest by a forecast.

#include <roundpipe/config.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/residency_choice.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace roundpipe::detail {

/// \brief \p forecast for one search, which asks it for many plans that cannot win.
///
/// Of these it gives the bound alone: where that is behind the best plan so far by more than could
/// yet change (\ref PlanForecast::loses). Of a plan without overlapping rounds, boundaries and
/// entries are all that changes, which are not in the bound. One with them is where a descent
/// begins (\ref OverlapSearch). \p best_s is what the best plan takes that the host has room for.
/// The references must outlive the result.
[[nodiscard]] PlanForecast without_losers(PlanForecast const& forecast,
                                          PlanOptions const& options,
                                          double& best_s);

/// Lets boundaries of a plan stay on the devices where that pays, see \ref keep_resident.
using ResidencyFunction = std::function<FoundPlan(PlanForecast const&, FoundPlan, ResidencyTrial)>;

/// One search, see \ref Planner::plan_stages.
class StageSearch {
 public:
  /// The references must outlive this. \p finder finds plans of \p model with \p options and \p
  /// forecast, which is \p unpruned \ref without_losers.
  StageSearch(StageFinder const& finder,
              ModelDescription const& model,
              ParameterBlocks const& blocks,
              CostModel const& costs,
              PlanOptions const& options,
              PlanForecast const& unpruned,
              PlanForecast const& forecast,
              ResidencyFunction keep_resident)
      : finder_(finder),
        model_(model),
        blocks_(blocks),
        costs_(costs),
        options_(options),
        unpruned_(unpruned),
        forecast_(forecast),
        keep_resident_(std::move(keep_resident)) {}

  /// Where the host has room for no plan, the one that takes least of those that were tried.
  /// \throws OverBudget when nothing fits a device.
  [[nodiscard]] FoundPlan run() const;

  /// A plan that the host has room for, or else that which takes least of it, of those without
  /// saves, with any entries, with checkpoints of stages or of layers. Boundaries are yet to stay.
  /// \throws as \ref run.
  [[nodiscard]] StagePlan least_of_host() const;

 private:
  /// \p set, with rounds that overlap where the options say so.
  [[nodiscard]] WorkingSet pinned(WorkingSet set) const {
    set.set_overlaps_rounds(options_.overlaps_rounds.value_or(set.overlaps_rounds()));
    return set;
  }
  /// What follows from \p set, \ref pinned.
  [[nodiscard]] WorkingSetChoice choice_of(WorkingSet set) const {
    return {model_, blocks_, costs_, pinned(std::move(set))};
  }
  /// The host keeps all saves of so many micro-batches.
  [[nodiscard]] WorkingSet keep_all_of(std::size_t micro_batches) const {
    return spread_saves(model_, micro_batches, options_.micro_batches_per_round);
  }
  /// While they run forward, the link carries so many eighths of what the first \p layers layers
  /// save, through a ring of \p entries.
  [[nodiscard]] WorkingSet carry(std::size_t layers,
                                 std::size_t eighths,
                                 std::size_t entries) const {
    return choose_saves(model_,
                        costs_,
                        layers,
                        static_cast<double>(eighths) / 8,
                        entries,
                        options_.micro_batches_per_round);
  }

  /// What the options pin, or checkpoints of stages. \throws Error (invalid_argument) for options
  /// that contradict each other.
  [[nodiscard]] WorkingSetChoice first_choice() const;

  /// Whether every layer has a checkpoint, as options pin it.
  [[nodiscard]] bool pins_layers() const {
    return options_.checkpoints == Checkpoints::layers ||
           options_.offloaded_micro_batches.value_or(0) > 0 || options_.save_levels;
  }

  /// The plan that the forecast prefers of the first and of those for which the host has room;
  /// without a forecast, the first, if there is any.
  [[nodiscard]] std::optional<FoundPlan> choose_buffering(WorkingSetChoice const& choice) const;

  /// Replaces \p best by \p other if the host has room for that, and it is faster or the host has
  /// none for \p best.
  void take_faster(FoundPlan& best, std::optional<FoundPlan> other) const;

  /// Of two plans that which alone the host has room for, or else the faster; of equals, \p a.
  [[nodiscard]] FoundPlan better(FoundPlan a, FoundPlan b) const;

  /// Replaces \p best by a plan of which the host keeps saves, if one is faster. A few saves may
  /// not be worth the ring's room while more are, so it climbs from three eighths of what the
  /// layers before the fused stage save, with the buffering that is best there.
  void keep_saves(FoundPlan& best) const;

  /// Replaces \p best by a plan whose rounds overlap, if one is faster, see \ref OverlapSearch.
  void overlap_rounds(FoundPlan& best) const;

  /// \p found with what there is room for besides: entries for saves, and boundaries that stay.
  [[nodiscard]] FoundPlan finish(FoundPlan const& found) const;

  /// Replaces \p top, whose working set is `set_of(eighths)`, by plans of the same stages with more
  /// eighths, up to \p most, or else with fewer, as long as they are faster; then by the best
  /// stages for these eighths.
  template <class F>
  void climb(std::optional<FoundPlan>& top,
             std::size_t eighths,
             std::size_t most,
             F const& set_of) const {
    auto const buffering = top->plan.memory.buffering;
    auto const go = [&](bool up) {
      auto const begin = eighths;
      for (auto n = eighths; up ? n++ < most : --n > 0; eighths = n) {
        auto found = finder_.evaluate(pinned(set_of(n)), buffering, top->plan.partition);
        if (!found || found->seconds >= top->seconds) {
          break;
        }
        top = std::move(found);
      }
      return eighths != begin;
    };
    if (go(true) || go(false)) {
      auto const choice = choice_of(set_of(eighths));  // may look at top
      top = finder_.refine(choice, buffering, std::move(top));
    }
  }

  /// Gives \p best more entries for saves on their way, as many as there is room for: compute waits
  /// less where copies are late.
  void deepen_saves(FoundPlan& best) const;

  /// \p found, of which boundaries stay on devices where that pays, perhaps in place of blocks of
  /// parameters.
  [[nodiscard]] FoundPlan keep_boundaries(FoundPlan const& found) const;

  StageFinder const& finder_;
  ModelDescription const& model_;
  ParameterBlocks const& blocks_;
  CostModel const& costs_;
  PlanOptions const& options_;
  PlanForecast const& unpruned_;
  PlanForecast const& forecast_;
  ResidencyFunction keep_resident_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_search.ipp>
#endif
