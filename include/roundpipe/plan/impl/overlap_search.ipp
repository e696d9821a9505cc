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
#include <roundpipe/system/lookahead.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::optional<StagePlan> OverlapSearch::run() const {
  constexpr auto near = 0.04;  // the end of another descent may be faster by so much
  std::optional<Place> best;
  std::set<Point> known;
  for (auto& start : starts()) {
    auto place = descend(std::move(start), 2, known);
    if (!best || place.seconds < best->seconds) {
      best = std::move(place);
    }
    if (!comes_near(best->seconds, near)) {
      return std::nullopt;
    }
  }
  return best ? std::optional(descend(*std::move(best), 1, known).plan) : std::nullopt;
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::faster_step(
    Place const& place, int share_step, std::set<Point>& known) const {
  struct Step {
    Axis axis;
    int by;
    Axis other = axes;  // moves, too
    int other_by = 0;
  };
  Step const steps[] = {{sixteenths, -share_step},
                        {sixteenths, share_step},
                        {backwards, 1, forwards, 1},
                        {backwards, -1, forwards, -1},
                        {backwards, 1},
                        {backwards, -1},
                        {forwards, 1},
                        {forwards, -1},
                        {saves, 1},
                        {saves, -1},
                        {fused, -1},
                        {fused, 1},
                        {fused, -1, backwards, 1},
                        {fused, 1, backwards, -1},
                        {backwards, -1, saves, -1},
                        {backwards, 1, saves, 1},
                        {gradients, -1},
                        {gradients, 1},
                        {first, -share_step},
                        {first, share_step},
                        {less, share_step},
                        {less, -share_step}};
  std::vector<Point> points;
  for (auto const& step : steps) {
    auto at = place.at;
    at[step.axis] += step.by;
    if (step.other != axes) {
      at[step.other] += step.other_by;
    }
    auto const rest = model_.size() - at[fused];
    at[forwards] = std::min(at[forwards], rest);
    at[backwards] = std::min(at[backwards], rest);
    at[first] = std::min(at[first], at[sixteenths]);
    at[less] = std::min(at[less], at[sixteenths] - 1);
    if (is_allowed(at) && !known.contains(at) && std::ranges::find(points, at) == points.end()) {
      points.push_back(at);
    }
  }
  Lookahead places(
      options_.aside, points.size(), [&](std::size_t i) { return go(points[i], place); });
  // The first axes matter most, so after a step each is tried anew.
  for (auto const& at : points) {
    known.insert(at);
    auto next = places.next();
    if (next && next->seconds < place.seconds) {
      return next;
    }
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE bool OverlapSearch::is_allowed(Point const& at) const {
  auto const within = [&](Axis axis, std::size_t least, std::size_t most) {
    return least <= at[axis] && at[axis] <= most;  // below 0 is above all
  };
  return within(fused, 1, model_.size()) && within(forwards, 1, model_.size()) &&
         within(backwards, 1, model_.size()) && within(sixteenths, 1, 16) && within(first, 1, 16) &&
         within(less, 0, 15) &&
         (options_.buffering || (within(saves, 2, 8) && within(gradients, 1, 2)));
}

ROUNDPIPE_INLINE WorkingSet OverlapSearch::set_of(Point const& at) const {
  auto const carried = [&](std::size_t count, std::size_t entries) -> WorkingSet const& {
    return carried_({count, entries}, [&] {
      return choose_saves(model_,
                          costs_,
                          model_.size() - 1,  // all but the loss
                          static_cast<double>(count) / 16,
                          entries,
                          options_.micro_batches_per_round);
    });
  };
  // Behind the saves of a forward stage there is the time of a backward stage.
  auto set = carried(at[sixteenths], 2 * at[saves]);
  set.set_round(0, carried(at[first], at[saves] - 1));
  if (at[less] > 0) {
    set.set_round(options_.rounds - 1, carried(at[sixteenths] - at[less], 2 * at[saves]));
  }
  set.set_overlaps_rounds(true);
  return set;
}

ROUNDPIPE_INLINE std::vector<OverlapSearch::Place> OverlapSearch::starts() const {
  constexpr auto near = 0.03;  // another start by so much slower may end in a better plan
  std::vector<Place> places;
  std::vector<Place> with_few;  // entries for saves
  auto const add = [](std::vector<Place>& to, std::optional<Place> place) {
    if (place) {
      to.push_back(*std::move(place));
    }
  };
  auto const fastest = [&] { return std::ranges::min_element(places, {}, &Place::seconds); };
  std::set<Point> known;
  auto const look = [&](std::size_t last,
                        std::size_t length,
                        std::size_t sums,
                        std::size_t carried,
                        std::size_t entries) {
    auto const stages = (model_.size() - std::min(last, model_.size())) / length;
    auto at = pinned({last, stages, stages, 0, carried, 2, 0, entries, sums});
    auto place = std::optional<Place>();
    while (!place && at[saves] >= 2 && known.insert(at).second) {
      place = fit(at, finder_.modes().front(), even(at));
      --at[saves];
    }
    return place;
  };
  auto const forecast = [&](std::vector<Place>& looks, double beside_s) {
    Lookahead seconds(options_.aside, looks.size(), [&](std::size_t i) {
      return seconds_of(looks[i].plan, beside_s);
    });
    for (auto& place : looks) {
      place.seconds = seconds.next();
    }
  };
  // What links can carry depends little on the stages.
  for (std::size_t const most : {12, 10, 8, 4}) {
    add(places, look(1, 2, 1, most, 4));
  }
  auto const may_start = [&](Place const& place) {
    return comes_near(forecast_.least(place.plan), most_gain);
  };
  if (!places.empty() && std::ranges::none_of(places, may_start)) {
    return {};
  }
  forecast(places, no_time);
  if (!places.empty() && !comes_near(fastest()->seconds, most_behind)) {
    return {};
  }
  auto const carried = places.empty() ? 12 : fastest()->at[sixteenths];
  auto const beside_s = places.empty() ? no_time : fastest()->seconds;
  std::vector<Place> more;
  for (std::size_t const length : {1, 2, 3, 4, 5}) {
    for (auto const last : {std::size_t{1}, length}) {
      for (std::size_t const sums : {2, 1}) {
        add(more, look(last, length, sums, carried, 4));
        add(with_few, look(last, length, sums, carried, 2));
      }
    }
    if (places.empty() && more.empty() && with_few.empty()) {
      break;  // longer stages need no less room
    }
  }
  forecast(more, beside_s);
  forecast(with_few, beside_s);
  for (auto& place : more) {
    places.push_back(std::move(place));
  }
  add(places, begin());
  if (places.empty()) {
    return {};
  }
  std::ranges::stable_sort(places, {}, &Place::seconds);
  auto const most_s = (1 + near) * places.front().seconds;
  auto const second = std::ranges::find_if(places, [&](Place const& place) {
    return place.at[forwards] != places.front().at[forwards] && place.seconds < most_s;
  });
  std::vector<Place> starts{places.front()};
  if (second != places.end()) {
    starts.push_back(*second);
  }
  auto const few = std::ranges::min_element(with_few, {}, &Place::seconds);
  if (few != with_few.end() && few->seconds < most_s) {
    starts.push_back(*few);
  }
  for (std::size_t i = 0, count = starts.size(); i < count; ++i) {
    auto at = starts[i].at;
    at[ends_short] = 1;
    add(starts, go(at, starts[i]));
  }
  auto const seconds = std::ranges::min_element(starts, {}, &Place::seconds)->seconds;
  return comes_near(seconds, most_gain) ? starts : std::vector<Place>();
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::begin() const {
  auto const short_stages = [&](WorkingSetChoice const& choice, Buffering const& buffering) {
    return finder_.with_lengths(choice, buffering, 1, 2);
  };
  auto buffering = finder_.modes().front();
  for (std::size_t const entries : {4, 3, 2}) {
    buffering.saves = entries;
    if (auto place = begin(buffering, short_stages)) {
      return place;
    }
  }
  auto const preferred = [&](WorkingSetChoice const& choice, Buffering const& each) {
    auto found = finder_.best(choice, each);
    return found ? std::optional(std::move(found->plan.partition)) : std::nullopt;
  };
  for (auto const& each : finder_.modes()) {
    if (auto place = begin(each, preferred)) {
      return place;
    }
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::begin(
    Buffering buffering, StagesFunction const& stages_of) const {
  buffering.saves = std::max<std::size_t>(buffering.saves, 2);
  Point at{};
  at[first] = 2;
  at[saves] = buffering.saves;
  at[gradients] = buffering.gradients;
  for (at[sixteenths] = 12; at[sixteenths] > 0; at[sixteenths] -= 2) {
    auto stages = stages_of(choice_of(at), buffering);
    if (stages) {
      at[fused] = stages->backward.front().count;
      at[forwards] = stages->forward.size();
      at[backwards] = stages->backward.size() - 1;
    }
    if (auto place = fit(at, buffering, std::move(stages))) {
      place->seconds = seconds_of(place->plan, no_time);
      return place;
    }
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::go(Point const& at,
                                                                       Place const& from) const {
  auto const keeps_stages = from.at[fused] == at[fused] && from.at[forwards] == at[forwards] &&
                            from.at[backwards] == at[backwards] &&
                            from.at[ends_short] == at[ends_short];
  auto place = fit(
      at, from.plan.memory.buffering, keeps_stages ? std::optional(from.plan.partition) : even(at));
  if (place) {
    place->seconds = seconds_of(place->plan, from.seconds);
  }
  return place;
}

ROUNDPIPE_INLINE std::optional<OverlapSearch::Place> OverlapSearch::fit(
    Point const& at, Buffering buffering, std::optional<Partition> stages) const {
  if (at[saves] < 2 || at != pinned(at)) {  // one entry is spare in the first round
    return std::nullopt;
  }
  buffering.saves = at[saves];
  buffering.gradients = at[gradients];
  auto plan = stages ? finder_.plan_of(set_of(at), buffering, *std::move(stages)) : std::nullopt;
  return plan ? std::optional(Place{at, *std::move(plan)}) : std::nullopt;
}

}  // namespace detail

}  // namespace roundpipe
