// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/stage_search.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE StagePlan StageSearch::run() const {
  auto const checkpoints = options_.checkpoints;
  auto const count = options_.offloaded_micro_batches;
  auto const& levels = options_.save_levels;
  auto const every = checkpoints == Checkpoints::layers || count.value_or(0) > 0 || levels;
  require(
      !every || checkpoints != Checkpoints::stages,
      Errc::invalid_argument,
      "offloaded_micro_batches and save_levels need Checkpoints::layers: leave checkpoints unset");
  auto first_set = levels  ? keep_levels(model_, *levels, options_.micro_batches_per_round)
                   : every ? keep_all_of(count.value_or(0))
                           : WorkingSet{};
  if (levels && options_.first_round_levels) {
    first_set.set_first_round(
        keep_levels(model_, *options_.first_round_levels, options_.micro_batches_per_round));
  }
  first_set.set_overlaps_rounds(options_.overlaps_rounds.value_or(false));
  require(levels || !options_.first_round_levels,
          Errc::invalid_argument,
          "first_round_levels need save_levels for the other rounds");
  auto const first = choice_of(std::move(first_set));
  auto best = choose_buffering(first);
  if (!best) {
    throw finder_.refusal(first);
  }
  if (forecast_ && !levels && !best->plan.partition.forward.empty()) {
    if (!every && !checkpoints) {
      take_faster(*best, choose_buffering(choice_of(keep_all_of(0))));
    }
    if (!count && checkpoints != Checkpoints::stages) {
      auto const eighths = keep_saves(*best);
      if (options_.overlaps_rounds.value_or(options_.rounds > 1)) {
        overlap_rounds(*best, eighths);
      }
    }
  }
  return std::move(best->plan);
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageSearch::choose_buffering(
    WorkingSetChoice const& choice) const {
  std::optional<FoundPlan> best;
  for (auto const& buffering : finder_.modes()) {
    auto found = finder_.find(choice, buffering);
    found = finder_.refine(choice, buffering, std::move(found));
    if (!best) {
      best = std::move(found);
    } else {
      take_faster(*best, std::move(found));
    }
    if (best && !forecast_) {
      break;
    }
  }
  return best;
}

ROUNDPIPE_INLINE void StageSearch::take_faster(FoundPlan& best,
                                               std::optional<FoundPlan> other) const {
  if (other && other->seconds < best.seconds && options_.host_has_room(other->plan)) {
    best = *std::move(other);
  }
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageSearch::with_room(
    std::optional<FoundPlan> found) const {
  return found && options_.host_has_room(found->plan) ? std::move(found) : std::nullopt;
}

ROUNDPIPE_INLINE std::size_t StageSearch::keep_saves(FoundPlan& best) const {
  constexpr std::size_t most_eighths = 12;  // layers that save much may follow one another
  std::size_t eighths = 3;
  std::optional<FoundPlan> top;
  auto const layers = [&] {  // before the fused stage
    return (top ? *top : best).plan.partition.backward.front().first;
  };
  for (auto const& buffering : finder_.modes()) {
    if (top && buffering.parameters < top->plan.memory.buffering.parameters) {
      break;  // saves leave the link no time for copies that stand exposed
    }
    auto found = try_keeping(layers(), eighths, buffering);
    top = faster(std::move(top), std::move(found));
  }
  auto const climb = [&](bool up) {
    auto const before = eighths;
    auto const buffering = top ? top->plan.memory.buffering : finder_.modes().front();
    for (auto n = eighths; up ? n++ < most_eighths : --n > 0;) {
      auto found = try_keeping(layers(), n, buffering);
      if (top && (!found || found->seconds >= top->seconds)) {
        break;
      }
      if (found) {
        top = std::move(found);
        eighths = n;
      }
    }
    return eighths != before;
  };
  if (!top || !climb(true)) {
    (void)climb(false);
  }
  take_faster(best, std::move(top));
  return eighths;
}

ROUNDPIPE_INLINE void StageSearch::overlap_rounds(FoundPlan& best,
                                                  std::size_t first_eighths) const {
  std::optional<FoundPlan> top;
  for (auto const& buffering : finder_.modes()) {
    if (top && buffering.parameters < top->plan.memory.buffering.parameters) {
      break;  // as for saves
    }
    // The time of a backward is enough for the saves of a forward, or nearly so.
    std::optional<FoundPlan> of_buffering;
    for (std::size_t eighths = 8; eighths > 0; --eighths) {
      auto found = try_overlapping(std::min(first_eighths, eighths), eighths, buffering);
      if (of_buffering && (!found || found->seconds >= of_buffering->seconds)) {
        break;
      }
      of_buffering = std::move(found);
    }
    top = faster(std::move(top), std::move(of_buffering));
  }
  // Where rounds overlap, the link is busy both ways nearly all the time, and forecasts are too
  // optimistic: on an H200 by 1 to 5 % more than those of other plans.
  constexpr double least_gain = 0.03;
  if (top && (options_.overlaps_rounds || top->seconds < (1 - least_gain) * best.seconds)) {
    take_faster(best, std::move(top));
  }
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageSearch::try_overlapping(
    std::size_t first_eighths, std::size_t eighths, Buffering const& buffering) const {
  auto const layers = model_.size() - 1;  // all but the loss
  // Behind the saves of a forward stage there is the time of a backward stage.
  auto set = carry(layers, eighths, 2 * std::max<std::size_t>(buffering.saves, 2));
  set.set_first_round(carry(layers, first_eighths, std::max<std::size_t>(buffering.saves, 2) - 1));
  set.set_overlaps_rounds(true);
  auto const choice = choice_of(std::move(set));
  return finder_.yields_to_forecast() ? finder_.refine(choice, buffering, std::nullopt)
                                      : with_room(finder_.find(choice, buffering));
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageSearch::try_keeping(
    std::size_t layers, std::size_t eighths, Buffering const& buffering) const {
  if (std::none_of(model_.layers.begin(),
                   model_.layers.begin() + static_cast<std::ptrdiff_t>(layers),
                   [](LayerFacts const& layer) { return layer.save_levels.size() > 1; })) {
    return std::nullopt;
  }
  // One entry of the ring is spare: boundaries and gradients come between saves.
  auto const entries = std::max<std::size_t>(buffering.saves, 2) - 1;
  auto const choice = choice_of(carry(layers, eighths, entries));
  auto const& modes = finder_.modes();
  for (auto mode = std::find(modes.begin(), modes.end(), buffering); mode != modes.end(); ++mode) {
    if (auto found = finder_.find(choice, *mode)) {
      return with_room(finder_.refine(choice, *mode, std::move(found)));
    }
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE WorkingSet StageSearch::carry(std::size_t layers,
                                               std::size_t eighths,
                                               std::size_t entries) const {
  return choose_saves(model_,
                      costs_,
                      layers,
                      static_cast<double>(eighths) / 8,
                      entries,
                      options_.micro_batches_per_round);
}

}  // namespace detail

}  // namespace roundpipe
