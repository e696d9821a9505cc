// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Searches for the fastest plan whose rounds overlap.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace roundpipe::detail {

/// \brief Descends by forecast along all that decides how well copies hide where rounds overlap.
///
/// There, links are busy both ways nearly all the time. How many saves they carry, how long stages
/// are, and how many saves may be on their way depend on each other: longer stages have more
/// gradients to send at once, and saves that wait for these need more entries. So the search
/// begins with short stages, steps along one axis or trades one for another, and ends where no
/// step is faster. Boundaries stay on devices as far as there is room, for then links carry less.
class OverlapSearch {
 public:
  /// The references must outlive this. \p forecast lets boundaries of a plan stay on devices first.
  OverlapSearch(StageFinder const& finder,
                ModelDescription const& model,
                ParameterBlocks const& blocks,
                CostModel const& costs,
                PlanOptions const& options,
                PlanForecast forecast)
      : finder_(finder),
        model_(model),
        blocks_(blocks),
        costs_(costs),
        options_(options),
        forecast_(std::move(forecast)) {}

  /// Nothing where no plan fits.
  [[nodiscard]] std::optional<StagePlan> run() const;

 private:
  enum Axis : std::size_t {
    fused,      ///< Layers of the fused stage.
    longest,    ///< Layers of the longest backward stage beside it.
    eighths,    ///< The link carries so many eighths of what layers save while they run forward;
    first,      ///< of the first round, whose forward runs alone, at most so many,
    less,       ///< and of the last one, whose backward runs alone, so many less.
    saves,      ///< Entries for saves on their way.
    gradients,  ///< Entries for gradients.
    axes,
  };
  using Point = std::array<std::size_t, axes>;
  struct Place {
    Point at;
    StagePlan plan;
    double seconds = 0;
  };

  /// The stages of a choice, if any fit.
  using StagesFunction =
      std::function<std::optional<Partition>(WorkingSetChoice const&, Buffering const&)>;

  [[nodiscard]] bool is_allowed(Point const& at) const;
  [[nodiscard]] WorkingSet set_of(Point const& at) const;
  [[nodiscard]] WorkingSetChoice choice_of(Point const& at) const {
    return {model_, blocks_, costs_, set_of(at)};
  }

  /// A place to begin at: short stages, or where there are none, what \ref StageFinder prefers, and
  /// the most saves that fit, up to \p most_eighths.
  [[nodiscard]] std::optional<Place> begin(std::size_t most_eighths) const;
  [[nodiscard]] std::optional<Place> begin(Buffering buffering,
                                           std::size_t most_eighths,
                                           StagesFunction const& stages_of) const;
  /// The place at \p at, with the stages of \p from if those have its lengths.
  [[nodiscard]] std::optional<Place> go(Point const& at, Place const& from) const;

  [[nodiscard]] Place forecast(Point const& at, StagePlan plan) const {
    auto const seconds = forecast_(plan);
    return {at, std::move(plan), seconds};
  }

  StageFinder const& finder_;
  ModelDescription const& model_;
  ParameterBlocks const& blocks_;
  CostModel const& costs_;
  PlanOptions const& options_;
  PlanForecast forecast_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/overlap_search.ipp>
#endif
