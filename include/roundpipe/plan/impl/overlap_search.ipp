// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/overlap_search.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::optional<StagePlan> OverlapSearch::run() const {
  struct Step {
    Axis axis;
    int by;
    Axis other = axes;  // moves by as much the other way
  };
  constexpr Step steps[] = {{eighths, -1},
                            {eighths, 1},
                            {longest, -1},
                            {longest, 1},
                            {saves, 1},
                            {saves, -1},
                            {longest, 1, fused},
                            {longest, -1, fused},
                            {longest, 1, saves},
                            {longest, -1, saves},
                            {fused, -1},
                            {fused, 1},
                            {gradients, -1},
                            {gradients, 1},
                            {longest, 1, gradients},
                            {first, -1},
                            {first, 1},
                            {less, 1},
                            {less, -1}};
  std::optional<Place> best;
  std::set<Point> known;
  // The time of a backward is enough for most saves of a forward, if the host has room for them.
  for (std::size_t const most_eighths : {6, 4}) {
    auto place = begin(most_eighths);
    if (!place || !known.insert(place->at).second) {
      continue;
    }
    auto const moves = [&](Step const& step) {
      auto at = place->at;
      at[step.axis] += step.by;
      if (step.other != axes) {
        at[step.other] -= step.by;
      }
      at[first] = std::min(at[first], at[eighths]);
      at[less] = std::min(at[less], at[eighths] - 1);
      auto next = is_allowed(at) && known.insert(at).second ? go(at, *place) : std::nullopt;
      if (!next || next->seconds >= place->seconds) {
        return false;
      }
      place = std::move(next);
      return true;
    };
    // The first axes matter most, so each step is tried anew after another one.
    while (std::any_of(std::begin(steps), std::end(steps), moves)) {
    }
    if (!best || place->seconds < best->seconds) {
      best = std::move(place);
    }
  }
  return best ? std::optional(std::move(best->plan)) : std::nullopt;
}

ROUNDPIPE_INLINE bool OverlapSearch::is_allowed(Point const& at) const {
  auto const within = [&](Axis axis, std::size_t least, std::size_t most) {
    return least <= at[axis] && at[axis] <= most;  // below 0 is above all
  };
  return within(fused, 1, model_.size()) && within(longest, 1, model_.size()) &&
         within(eighths, 1, 8) && within(first, 1, 8) && within(less, 0, 7) &&
         within(saves, 2, 8) && within(gradients, 1, 2);
}

ROUNDPIPE_INLINE WorkingSet OverlapSearch::set_of(Point const& at) const {
  auto const carried = [&](std::size_t count, std::size_t entries) {
    return choose_saves(model_,
                        costs_,
                        model_.size() - 1,  // all but the loss
                        static_cast<double>(count) / 8,
                        entries,
                        options_.micro_batches_per_round);
  };
  // Behind the saves of a forward stage there is the time of a backward stage.
  auto set = carried(at[eighths], 2 * at[saves]);
  set.set_round(0, carried(at[first], at[saves] - 1));
  if (at[less] > 0) {
    set.set_round(options_.rounds - 1, carried(at[eighths] - at[less], 2 * at[saves]));
  }
  set.set_overlaps_rounds(true);
  return set;
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::begin(
    std::size_t most_eighths) const {
  auto const short_stages = [&](WorkingSetChoice const& choice, Buffering const& buffering) {
    return finder_.with_lengths(choice, buffering, 1, 2);
  };
  auto buffering = finder_.modes().front();
  for (std::size_t const entries : {4, 3, 2}) {
    buffering.saves = entries;
    if (auto place = begin(buffering, most_eighths, short_stages)) {
      return place;
    }
  }
  auto const preferred = [&](WorkingSetChoice const& choice, Buffering const& each) {
    auto found = finder_.best(choice, each);
    return found ? std::optional(std::move(found->plan.partition)) : std::nullopt;
  };
  for (auto const& each : finder_.modes()) {
    if (auto place = begin(each, most_eighths, preferred)) {
      return place;
    }
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::begin(
    Buffering buffering, std::size_t most_eighths, StagesFunction const& stages_of) const {
  buffering.saves = std::max<std::size_t>(buffering.saves, 2);
  Point at{};
  at[first] = 1;
  at[saves] = buffering.saves;
  at[gradients] = buffering.gradients;
  for (at[eighths] = most_eighths; at[eighths] > 0; --at[eighths]) {
    auto const choice = choice_of(at);
    auto stages = stages_of(choice, buffering);
    auto plan = stages ? finder_.plan_of(choice.set, buffering, *std::move(stages)) : std::nullopt;
    if (plan) {
      auto const& backward = plan->partition.backward;
      at[fused] = backward.front().count;
      for (std::size_t i = 1; i < backward.size(); ++i) {
        at[longest] = std::max(at[longest], backward[i].count);
      }
      return forecast(at, *std::move(plan));
    }
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::go(Point const& at,
                                                                       Place const& from) const {
  auto buffering = from.plan.memory.buffering;
  buffering.saves = at[saves];
  buffering.gradients = at[gradients];
  auto const keeps_stages = from.at[fused] == at[fused] && from.at[longest] == at[longest];
  auto stages = keeps_stages
                    ? std::optional(from.plan.partition)
                    : finder_.with_lengths(choice_of(at), buffering, at[fused], at[longest]);
  auto plan = stages ? finder_.plan_of(set_of(at), buffering, *std::move(stages)) : std::nullopt;
  return plan ? std::optional(forecast(at, *std::move(plan))) : std::nullopt;
}

}  // namespace detail

}  // namespace roundpipe
