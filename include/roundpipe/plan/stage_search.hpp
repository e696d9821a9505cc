// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Searches for the stages that fit a budget and are fastest by a forecast.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// One search, see \ref Planner::plan_stages.
class StageSearch {
 public:
  /// `PartitionPolicy::partition`.
  using PartitionFunction = std::function<Partition(PartitionProblem const&)>;

  /// The references must outlive this. \p yields_to_forecast: as \ref roundpipe::yields_to_forecast
  /// says of the policy.
  StageSearch(PartitionFunction partition,
              bool yields_to_forecast,
              std::size_t activations_in_flight,
              ModelDescription const& model,
              ParameterBlocks const& blocks,
              CostModel const& costs,
              PlanOptions const& options,
              PlanForecast const& forecast)
      : partition_(std::move(partition)),
        yields_to_forecast_(yields_to_forecast),
        modes_{{2, 2, activations_in_flight, 3},
               {2, 1, activations_in_flight, 3},
               {1, 1, activations_in_flight},
               {1, 1, 1}},
        model_(model),
        blocks_(blocks),
        costs_(costs),
        options_(options),
        forecast_(forecast) {}

  /// \throws Error (over_budget) when nothing fits.
  [[nodiscard]] StagePlan run() const;

 private:
  struct Found {
    StagePlan plan;
    double seconds = 0;  ///< By forecast.
  };

  [[nodiscard]] WorkingSetChoice choice_of(WorkingSet set) const {
    return {model_, blocks_, costs_, std::move(set)};
  }
  /// The host keeps the saves of so many micro-batches.
  [[nodiscard]] WorkingSetChoice keeping(std::size_t micro_batches) const {
    return choice_of(spread_saves(model_, micro_batches, options_.micro_batches_per_round));
  }

  /// The plan that the forecast prefers; without one, the first, if there is any.
  [[nodiscard]] std::optional<Found> choose_buffering(WorkingSetChoice const& choice) const;

  /// Replaces \p best by \p other if that is faster and the host has room for it.
  void take_faster(Found& best, std::optional<Found> other) const;

  /// Replaces \p best by a plan of which the host keeps saves, if one is faster. A few saves may
  /// not be worth the ring's room while more are, so it climbs from three eighths of what the
  /// layers before the fused stage save, with the buffering that is best there.
  void keep_saves(Found& best) const;

  /// The plan of which the link carries so many eighths of what the first \p layers layers save,
  /// with \p buffering or less of it.
  [[nodiscard]] std::optional<Found> try_keeping(std::size_t layers,
                                                 std::size_t eighths,
                                                 Buffering const& buffering) const;

  [[nodiscard]] std::optional<StagePlan> try_buffering(WorkingSetChoice const& choice,
                                                       Buffering const& buffering,
                                                       Bytes budget) const;

  /// \p found, or the plan of one of the best partitions that \ref StageRefinement finds with the
  /// same buffering, whichever is faster by forecast. Where the policy does not yield: \p found.
  [[nodiscard]] Found refine(WorkingSetChoice const& choice, Found found) const;

  /// Stages that take less than \p longest_s and need no more than \p most bytes each, those of
  /// several layers no more than \p limit.
  [[nodiscard]] std::optional<Partition> try_partition(WorkingSetChoice const& choice,
                                                       Buffering const& buffering,
                                                       Bytes most,
                                                       Bytes limit,
                                                       double longest_s) const;

  [[nodiscard]] Error refusal(WorkingSetChoice const& choice) const;

  /// By bisection over what \ref try_buffering finds; all sizes are multiples of 256 bytes.
  [[nodiscard]] Bytes smallest_budget(WorkingSetChoice const& choice) const;

  PartitionFunction partition_;
  bool yields_to_forecast_;
  std::vector<Buffering> modes_;  // from the fastest to the most frugal
  ModelDescription const& model_;
  ParameterBlocks const& blocks_;
  CostModel const& costs_;
  PlanOptions const& options_;
  PlanForecast const& forecast_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_search.ipp>
#endif
