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
  require(levels || options_.levels_of_rounds.empty(),
          Errc::invalid_argument,
          "levels_of_rounds need save_levels for the other rounds");
  for (auto const& [round, of_round] : options_.levels_of_rounds) {
    require(round < options_.rounds,
            Errc::invalid_argument,
            "levels_of_rounds name a round that a call does not have");
    first_set.set_round(round, keep_levels(model_, of_round, options_.micro_batches_per_round));
  }
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
    auto const shallow = *best;
    deepen_saves(*best);
    auto deep = keep_boundaries(*best);
    if (best->plan.memory.buffering == shallow.plan.memory.buffering) {
      return std::move(deep.plan);
    }
    return std::move(faster(std::move(deep), keep_boundaries(shallow))->plan);  // it has more room
  }
  return keep_boundaries(*best).plan;
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

ROUNDPIPE_INLINE std::size_t StageSearch::keep_saves(FoundPlan& best) const {
  constexpr std::size_t most_eighths = 12;  // layers that save much may follow one another
  std::size_t eighths = 3;
  std::optional<FoundPlan> top;
  auto const set_of = [&](std::size_t n, Buffering const& buffering) {
    auto const& stages = (top ? *top : best).plan.partition;
    // One entry of the ring is spare: boundaries and gradients come between saves.
    auto const entries = std::max<std::size_t>(buffering.saves, 2) - 1;
    return carry(stages.backward.front().first, n, entries);
  };
  auto const try_all = [&](std::size_t n) {
    for (auto const& buffering : finder_.modes()) {
      if (top && buffering.parameters < top->plan.memory.buffering.parameters) {
        break;  // saves leave the link no time for copies that stand exposed
      }
      auto found = finder_.best(choice_of(set_of(n, buffering)), buffering);
      top = faster(std::move(top), std::move(found));
    }
  };
  try_all(eighths);
  while (!top && eighths > 1) {
    try_all(--eighths);
  }
  if (!top) {
    return eighths;
  }
  auto const buffering = top->plan.memory.buffering;
  eighths = climb(top, eighths, most_eighths, [&](std::size_t n) { return set_of(n, buffering); });
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
    auto found = overlap_with(buffering, first_eighths);
    top = faster(std::move(top), std::move(found));
  }
  // Where rounds overlap, the link is busy both ways nearly all the time, and forecasts are too
  // optimistic: on an H200 by 1 to 5 % more than those of other plans.
  constexpr double least_gain = 0.03;
  if (top && (options_.overlaps_rounds || top->seconds < (1 - least_gain) * best.seconds)) {
    take_faster(best, std::move(top));
  }
}

ROUNDPIPE_INLINE void StageSearch::deepen_saves(FoundPlan& best) const {
  constexpr std::size_t most_entries = 8;
  auto const& stages = best.plan.train;
  if (std::none_of(
          stages.begin(), stages.end(), [](auto const& stage) { return stage.save_bytes > 0; })) {
    return;
  }
  auto buffering = best.plan.memory.buffering;
  while (buffering.saves++ < most_entries) {
    auto deeper =
        finder_.evaluate(best.plan.train.front().working_set, buffering, best.plan.partition);
    if (!deeper || deeper->seconds > best.seconds) {
      break;
    }
    best = *std::move(deeper);
  }
}

ROUNDPIPE_INLINE FoundPlan StageSearch::keep_boundaries(FoundPlan const& found) const {
  auto const& plan = found.plan;
  auto kept = keep_resident_(found);
  if (!forecast_ || options_.resident_parameters || plan.train.size() == 1 ||
      plan.memory.resident_parameters.empty()) {
    return kept;
  }
  FoundPlan other{
      finder_.lay_out(plan.partition, plan.memory.buffering, plan.train.front().working_set)};
  other.seconds = forecast_(other.plan);
  return *faster(std::move(kept), keep_resident_(std::move(other)));
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageSearch::overlap_with(
    Buffering const& buffering, std::size_t first_eighths) const {
  auto const layers = model_.size() - 1;  // all but the loss
  auto const entries = std::max<std::size_t>(buffering.saves, 2);
  auto const set_with = [&](std::size_t eighths, std::size_t last_eighths) {
    // Behind the saves of a forward stage there is the time of a backward stage.
    auto set = carry(layers, eighths, 2 * entries);
    set.set_round(0, carry(layers, std::min(first_eighths, eighths), entries - 1));
    if (last_eighths < eighths) {
      set.set_round(options_.rounds - 1, carry(layers, last_eighths, 2 * entries));
    }
    set.set_overlaps_rounds(true);
    return set;
  };
  auto const set_of = [&](std::size_t eighths) { return set_with(eighths, eighths); };
  // The time of a backward is enough for all saves of a forward, or nearly so.
  std::optional<FoundPlan> top;
  std::size_t eighths = 8;
  while (!(top = finder_.best(choice_of(set_of(eighths)), buffering)) && eighths > 1) {
    --eighths;
  }
  if (top) {
    eighths = climb(top, eighths, eighths, set_of);
    climb(top, eighths, eighths, [&](std::size_t last) { return set_with(eighths, last); });
  }
  return top;
}

}  // namespace detail

}  // namespace roundpipe
