// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/plan/overlap_search.hpp>
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

/// A plan whose rounds do not overlap, and whose bound is behind the best plan by more, loses.
inline constexpr double most_behind_bound = 0.01;

ROUNDPIPE_INLINE PlanForecast without_losers(PlanForecast const& forecast,
                                             PlanOptions const& options,
                                             double& best_s) {
  if (!forecast.knows_least()) {
    return forecast;
  }
  auto const loses = [&](double least_s, bool overlaps_rounds) {
    auto const may_gain = overlaps_rounds ? OverlapSearch::most_behind : most_behind_bound;
    return least_s > (1 + may_gain) * best_s;
  };
  auto const seconds = [&options, &forecast, &best_s, loses](StagePlan const& plan) {
    auto const least_s = forecast.least(plan);
    if (loses(least_s, plan.train.front().working_set.overlaps_rounds())) {
      return least_s;
    }
    auto const plan_s = forecast(plan);
    if (plan_s < best_s && options.host_has_room(plan)) {
      best_s = plan_s;
    }
    return plan_s;
  };
  return {seconds, [&](StagePlan const& plan) { return forecast.least(plan); }, loses};
}

ROUNDPIPE_INLINE WorkingSetChoice StageSearch::first_choice() const {
  if (auto const& pinned = options_.buffering) {
    for (auto const entries :
         {pinned->parameters, pinned->gradients, pinned->activations, pinned->saves}) {
      require(0 < entries && entries <= most_ring_entries,
              Errc::invalid_argument,
              "buffering names 0 entries for a ring, or more than most_ring_entries");
    }
  }
  auto const& levels = options_.save_levels;
  require(
      !pins_layers() || options_.checkpoints != Checkpoints::stages,
      Errc::invalid_argument,
      "offloaded_micro_batches and save_levels need Checkpoints::layers: leave checkpoints unset");
  auto set = levels          ? keep_levels(model_, *levels, options_.micro_batches_per_round)
             : pins_layers() ? keep_all_of(options_.offloaded_micro_batches.value_or(0))
                             : WorkingSet{};
  require(levels || options_.levels_of_rounds.empty(),
          Errc::invalid_argument,
          "levels_of_rounds need save_levels for the other rounds");
  for (auto const& [round, of_round] : options_.levels_of_rounds) {
    require(round < options_.rounds,
            Errc::invalid_argument,
            "levels_of_rounds name a round that a call does not have");
    set.set_round(round, keep_levels(model_, of_round, options_.micro_batches_per_round));
  }
  return choice_of(std::move(set));
}

ROUNDPIPE_INLINE FoundPlan StageSearch::run() const {
  auto best = choose_buffering(first_choice());
  if (!best) {
    throw finder_.refusal(first_choice());
  }
  if (!forecast_ || options_.save_levels || best->plan.partition.forward.empty()) {
    best = keep_boundaries(*best);
  } else {
    if (!pins_layers() && !options_.checkpoints) {
      take_faster(*best, choose_buffering(choice_of(keep_all_of(0))));
    }
    auto const may_keep =
        !options_.offloaded_micro_batches && options_.checkpoints != Checkpoints::stages;
    if (may_keep) {
      keep_saves(*best);
    }
    best = finish(*best);
    if (may_keep && options_.overlaps_rounds.value_or(options_.rounds > 1)) {
      overlap_rounds(*best);
    }
  }
  return options_.host_has_room(best->plan)
             ? *std::move(best)
             : keep_resident_(forecast_,
                              {least_of_host(), forecast_ ? FoundPlan::unknown : 0},
                              ResidencyTrial::forced);
}

ROUNDPIPE_INLINE StagePlan StageSearch::least_of_host() const {
  std::optional<StagePlan> least;
  Bytes least_bytes = 0;
  auto const has_room = [&](WorkingSetChoice const& choice) {
    auto const& modes = finder_.modes();  // the most frugal one is the last
    return std::any_of(modes.rbegin(), modes.rend(), [&](Buffering const& buffering) {
      auto plan = finder_.fitting(choice, buffering);
      auto const bytes = plan && options_.host_bytes ? options_.host_bytes(*plan) : 0;
      if (plan && (!least || bytes < least_bytes)) {
        least = std::move(plan);
        least_bytes = bytes;
      }
      return least && least_bytes <= options_.host_memory;
    });
  };
  auto const found = has_room(first_choice());
  if (!least) {
    throw finder_.refusal(first_choice());
  }
  if (!found && !pins_layers() && !options_.checkpoints) {
    auto layers = keep_all_of(0);
    if (!has_room(choice_of(layers)) && options_.overlaps_rounds.value_or(options_.rounds > 1)) {
      layers.set_overlaps_rounds(true);
      (void)has_room(choice_of(layers));
    }
  }
  return *std::move(least);
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageSearch::choose_buffering(
    WorkingSetChoice const& choice) const {
  std::optional<FoundPlan> best;
  for (auto const& buffering : finder_.modes()) {
    auto found = finder_.refine(choice, buffering, finder_.find(choice, buffering));
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
  auto const has_room = [&](FoundPlan const& found) { return options_.host_has_room(found.plan); };
  if (other && has_room(*other) && (other->seconds < best.seconds || !has_room(best))) {
    best = *std::move(other);
  }
}

ROUNDPIPE_INLINE FoundPlan StageSearch::better(FoundPlan a, FoundPlan b) const {
  auto const has_room = options_.host_has_room(a.plan);
  auto const takes_a =
      has_room == options_.host_has_room(b.plan) ? a.seconds <= b.seconds : has_room;
  return takes_a ? std::move(a) : std::move(b);
}

ROUNDPIPE_INLINE void StageSearch::keep_saves(FoundPlan& best) const {
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
      auto found = finder_.best(choice_of(set_of(n, buffering)), buffering);
      top = faster(std::move(top), std::move(found));
    }
  };
  try_all(eighths);
  while (!top && eighths > 1) {
    try_all(--eighths);
  }
  if (top) {
    auto const buffering = top->plan.memory.buffering;
    climb(top, eighths, most_eighths, [&](std::size_t n) { return set_of(n, buffering); });
    take_faster(best, std::move(top));
  }
}

ROUNDPIPE_INLINE void StageSearch::overlap_rounds(FoundPlan& best) const {
  auto const has_room = options_.host_has_room(best.plan);
  auto const may_lose = has_room && !options_.overlaps_rounds;
  auto const to_beat_s = may_lose ? std::min(best.seconds, options_.seconds_to_beat) : no_time;
  // Threads may ask it at the same time, so it must not know the best plan so far.
  auto const seconds = [&](StagePlan const& plan) {
    auto const kept = keep_resident_(unpruned_, {plan, FoundPlan::unknown}, ResidencyTrial::most);
    return kept.seconds == FoundPlan::unknown ? unpruned_(plan) : kept.seconds;
  };
  auto const least = [&](StagePlan const& plan) {  // wherever boundaries are
    return unpruned_.least(plan);
  };
  PlanForecast const forecast(seconds, least);
  auto top = OverlapSearch(finder_, model_, blocks_, costs_, options_, forecast, to_beat_s).run();
  if (!top) {
    return;
  }
  auto found = finder_.evaluate(
      top->train.front().working_set, top->memory.buffering, std::move(top->partition));
  auto overlapping = finish(found.value());
  // Copies run both ways nearly all the time there, and one that is late makes others late: even
  // from costs as training has them, forecasts of such plans are too optimistic, on two H100s by 1
  // to 2 % more than those of other plans.
  auto const least_gain = options_.overlaps_rounds ? 0 : 0.02;
  if (overlapping.seconds < (1 - least_gain) * best.seconds || !has_room) {
    best = std::move(overlapping);
  }
}

ROUNDPIPE_INLINE FoundPlan StageSearch::finish(FoundPlan const& found) const {
  auto deep = found;
  deepen_saves(deep);
  auto const is_deeper = !(deep.plan.memory.buffering == found.plan.memory.buffering);
  auto kept = keep_boundaries(deep);
  return is_deeper ? better(std::move(kept), keep_boundaries(found)) : kept;  // it has more room
}

ROUNDPIPE_INLINE void StageSearch::deepen_saves(FoundPlan& best) const {
  constexpr std::size_t most_entries = 8;
  auto const& stages = best.plan.train;
  if (options_.buffering || std::none_of(stages.begin(), stages.end(), [](auto const& stage) {
        return stage.save_bytes > 0;
      })) {
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
  auto kept = keep_resident_(forecast_, found, ResidencyTrial::all);
  if (!forecast_ || options_.resident_parameters || plan.train.size() == 1 ||
      plan.memory.resident_parameters.empty()) {
    return kept;
  }
  FoundPlan other{
      finder_.lay_out(plan.partition, plan.memory.buffering, plan.train.front().working_set)};
  other.seconds = forecast_(other.plan);
  return better(std::move(kept), keep_resident_(forecast_, std::move(other), ResidencyTrial::all));
}

}  // namespace detail

}  // namespace roundpipe
