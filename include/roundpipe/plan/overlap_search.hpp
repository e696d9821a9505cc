// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Searches for the fastest plan whose rounds overlap.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/memo.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// Of a plan that is not there.
inline constexpr auto no_time = std::numeric_limits<double>::infinity();

/// \brief Descends by forecast along all that decides how well copies hide where rounds overlap.
///
/// There, links are busy both ways nearly all the time. How many saves they carry, how long stages
/// are, and how many saves may be on their way depend on each other: longer stages have more
/// gradients to send at once, and saves that wait for these need more entries. Uneven stages leave
/// links idle or late. So the search begins with the best of even stages of a few lengths, steps
/// along one axis or two, and ends where no step is faster. Where other lengths are nearly as good,
/// it begins again there: from 12 blocks of Llama 3.1 8B on two H100s, the second descent ends in a
/// plan faster by 3.7 %. And it begins with short stages at the end of the backward: the call's
/// last gradients are fewer then, and the other devices wait less for the first forward stages of
/// the next call. Boundaries stay on devices as far as there is room, for then links carry less.
class OverlapSearch {
 public:
  /// By this share steps from a start may make a plan faster, and so may other stages.
  static constexpr double most_gain = 0.08;
  /// A plan that is further behind leads to no faster one.
  static constexpr double most_behind = 2 * most_gain;

  /// The references must outlive this. \p forecast lets boundaries of a plan stay on devices first.
  /// \param to_beat_s the seconds of the best plan whose rounds do not overlap: infinite where
  ///        there is none, or no room for it.
  OverlapSearch(StageFinder const& finder,
                ModelDescription const& model,
                ParameterBlocks const& blocks,
                CostModel const& costs,
                PlanOptions const& options,
                PlanForecast forecast,
                double to_beat_s)
      : finder_(finder),
        model_(model),
        blocks_(blocks),
        costs_(costs),
        options_(options),
        forecast_(std::move(forecast)),
        to_beat_s_(to_beat_s) {}

  /// Nothing where no plan fits, or none comes near the one to beat.
  [[nodiscard]] std::optional<StagePlan> run() const;

 private:
  enum Axis : std::size_t {
    fused,       ///< Layers of the fused stage.
    forwards,    ///< Forward stages,
    backwards,   ///< and backward stages beside the fused one.
    ends_short,  ///< 1 where the backward stages that run last are the shorter ones.
    sixteenths,  ///< The link carries so many 16ths of what layers save while they run forward;
    first,       ///< of the first round, whose forward runs alone, at most so many,
    less,        ///< and of the last one, whose backward runs alone, so many less.
    saves,       ///< Entries for saves on their way.
    gradients,   ///< Entries for gradients.
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

  /// \p at with the entries that the options pin.
  [[nodiscard]] Point pinned(Point at) const {
    if (options_.buffering) {
      at[saves] = options_.buffering->saves;
      at[gradients] = options_.buffering->gradients;
    }
    return at;
  }
  [[nodiscard]] bool is_allowed(Point const& at) const;
  /// Whether a plan that takes \p seconds would beat the one to beat if it were \p gain faster.
  [[nodiscard]] bool comes_near(double seconds, double gain) const {
    return seconds < (1 + gain) * to_beat_s_;
  }
  [[nodiscard]] std::optional<Partition> even(Point const& at) const {
    return finder_.even(at[fused], at[forwards], at[backwards], at[ends_short] == 1);
  }
  [[nodiscard]] WorkingSet set_of(Point const& at) const;
  [[nodiscard]] WorkingSetChoice choice_of(Point const& at) const {
    return {model_, blocks_, costs_, set_of(at)};
  }

  /// Places to begin at: the fastest of even stages of a few lengths, with as many entries for
  /// saves as fit, and of \ref begin; if they are nearly as fast, the fastest of these with another
  /// number of forward stages, and the fastest of even stages with two entries, which leave room
  /// for longer ones; and each of them with stages that end short. None where no place leads to a
  /// faster plan than the one to beat.
  [[nodiscard]] std::vector<Place> starts() const;
  /// A place with the stages of the policy: short ones, or where there are none, what \ref
  /// StageFinder prefers, and the most saves that fit.
  [[nodiscard]] std::optional<Place> begin() const;
  [[nodiscard]] std::optional<Place> begin(Buffering buffering,
                                           StagesFunction const& stages_of) const;
  /// Where no step from \p place is faster, except to one that is \p known; it adds those it tries.
  /// Shares go in steps of \p share_step sixteenths.
  [[nodiscard]] Place descend(Place place, int share_step, std::set<Point>& known) const {
    known.insert(place.at);
    while (auto next = faster_step(place, share_step, known)) {
      place = *std::move(next);
    }
    return place;
  }
  /// The first step from \p place that is faster, likewise.
  [[nodiscard]] std::optional<Place> faster_step(Place const& place,
                                                 int share_step,
                                                 std::set<Point>& known) const;
  /// The place at \p at, with the stages of \p from if there are as many; otherwise even ones.
  [[nodiscard]] std::optional<Place> go(Point const& at, Place const& from) const;
  /// The place at \p at with these stages, if there is room, without its seconds.
  [[nodiscard]] std::optional<Place> fit(Point const& at,
                                         Buffering buffering,
                                         std::optional<Partition> stages) const;
  /// Those of \p plan, or only a bound if it is too far behind the plan to beat or \p beside_s.
  [[nodiscard]] double seconds_of(StagePlan const& plan, double beside_s) const {
    auto const least_s = forecast_.least(plan);
    return least_s > (1 + most_behind) * std::min(to_beat_s_, beside_s) ? least_s : forecast_(plan);
  }

  StageFinder const& finder_;
  ModelDescription const& model_;
  ParameterBlocks const& blocks_;
  CostModel const& costs_;
  PlanOptions const& options_;
  PlanForecast forecast_;
  double to_beat_s_;
  /// What links carry of saves, by 16ths and entries: many points share it.
  mutable Memo<std::pair<std::size_t, std::size_t>, WorkingSet> carried_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/overlap_search.ipp>
#endif
