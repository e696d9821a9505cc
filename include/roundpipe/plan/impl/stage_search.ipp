// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/stage_refinement.hpp>
#include <roundpipe/plan/stage_search.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace roundpipe {

namespace detail {

/// What the stage of several layers needs that needs most; 0 when there is none.
[[nodiscard]] ROUNDPIPE_INLINE Bytes largest_stage(WorkingSetChoice const& choice,
                                                   Partition const& partition,
                                                   Buffering const& buffering) {
  Bytes largest = 0;
  auto const add = [&](StageDirection direction, std::span<LayerRange const> ranges) {
    for (auto const& range : ranges) {
      if (range.count > 1) {
        largest = std::max(largest, choice.sizes.bytes(direction, range, buffering));
      }
    }
  };
  add(StageDirection::forward, partition.forward);
  add(StageDirection::backward, partition.backward);
  return largest;
}

ROUNDPIPE_INLINE StagePlan StageSearch::run() const {
  auto const checkpoints = options_.checkpoints;
  auto const count = options_.offloaded_micro_batches;
  auto const& levels = options_.save_levels;
  auto const every = checkpoints == Checkpoints::layers || count.value_or(0) > 0 || levels;
  require(
      !every || checkpoints != Checkpoints::stages,
      Errc::invalid_argument,
      "offloaded_micro_batches and save_levels need Checkpoints::layers: leave checkpoints unset");
  auto const first = levels
                         ? choice_of(keep_levels(model_, *levels, options_.micro_batches_per_round))
                     : every ? keeping(count.value_or(0))
                             : choice_of(WorkingSet{});
  auto best = choose_buffering(first);
  if (!best) {
    throw refusal(first);
  }
  if (forecast_ && !levels && !best->plan.partition.forward.empty()) {
    if (!every && !checkpoints) {
      take_faster(*best, choose_buffering(keeping(0)));
    }
    if (!count && checkpoints != Checkpoints::stages) {
      keep_saves(*best);
    }
  }
  return std::move(best->plan);
}

ROUNDPIPE_INLINE std::optional<StageSearch::Found> StageSearch::choose_buffering(
    WorkingSetChoice const& choice) const {
  std::optional<Found> best;
  std::optional<Partition> tried;
  for (auto const& buffering : modes_) {
    auto plan = try_buffering(choice, buffering, options_.device_memory);
    if (!plan || (!yields_to_forecast_ && plan->partition == tried)) {
      continue;  // refinement may make something else of it
    }
    tried = plan->partition;
    auto const seconds = forecast_ ? forecast_(*plan) : 0;
    Found found{*std::move(plan), seconds};
    if (forecast_) {
      found = refine(choice, std::move(found));
    }
    if (!best || found.seconds < best->seconds) {
      best = std::move(found);
    }
    if (!forecast_) {
      break;
    }
  }
  return best;
}

ROUNDPIPE_INLINE void StageSearch::take_faster(Found& best, std::optional<Found> other) const {
  if (other && other->seconds < best.seconds && options_.host_has_room(other->plan)) {
    best = *std::move(other);
  }
}

ROUNDPIPE_INLINE void StageSearch::keep_saves(Found& best) const {
  constexpr std::size_t most_eighths = 12;  // layers that save much may follow one another
  std::size_t eighths = 3;
  std::optional<Found> top;
  auto const layers = [&] {  // before the fused stage
    return (top ? *top : best).plan.partition.backward.front().first;
  };
  for (auto const& buffering : modes_) {
    auto found = try_keeping(layers(), eighths, buffering);
    if (found && (!top || found->seconds < top->seconds)) {
      top = std::move(found);
    }
  }
  auto const climb = [&](bool up) {
    auto const before = eighths;
    auto const buffering = top ? top->plan.memory.buffering : modes_.front();
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
}

ROUNDPIPE_INLINE std::optional<StageSearch::Found> StageSearch::try_keeping(
    std::size_t layers, std::size_t eighths, Buffering const& buffering) const {
  if (std::none_of(model_.layers.begin(),
                   model_.layers.begin() + static_cast<std::ptrdiff_t>(layers),
                   [](LayerFacts const& layer) { return layer.save_levels.size() > 1; })) {
    return std::nullopt;
  }
  auto const share = static_cast<double>(eighths) / 8;
  // One entry of the ring is spare: boundaries and gradients come between saves.
  auto const entries = std::max<std::size_t>(buffering.saves, 2) - 1;
  auto const choice = choice_of(
      choose_saves(model_, costs_, layers, share, entries, options_.micro_batches_per_round));
  for (auto mode = std::find(modes_.begin(), modes_.end(), buffering); mode != modes_.end();
       ++mode) {
    if (auto plan = try_buffering(choice, *mode, options_.device_memory)) {
      auto const seconds = forecast_(*plan);
      auto found = refine(choice, Found{*std::move(plan), seconds});
      if (!options_.host_has_room(found.plan)) {
        return std::nullopt;
      }
      return found;
    }
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE std::optional<StagePlan> StageSearch::try_buffering(WorkingSetChoice const& choice,
                                                                     Buffering const& buffering,
                                                                     Bytes budget) const {
  std::optional<StagePlan> found;
  auto const most = budget - std::min(budget, options_.held_memory);
  auto limit = most;
  auto longest_s = std::numeric_limits<double>::infinity();
  while (auto partition = try_partition(choice, buffering, most, limit, longest_s)) {
    auto plan = lay_out_stages(model_, blocks_, *std::move(partition), buffering, choice.set);
    if (plan.memory.bytes + options_.held_by(plan) > budget) {
      // Each ring is as large as its largest stage needs, so stages that fit one by one may not
      // fit together. A lower limit for stages that can be cut gives the next partition to try;
      // none between is left out, so that a larger budget never fails where a smaller one works.
      auto const largest = largest_stage(choice, plan.partition, buffering);
      if (largest == 0 || largest > limit) {
        break;  // nothing can be cut, or the policy does not heed limits
      }
      limit = largest - 1;
      continue;
    }
    found = std::move(plan);
    if (found->partition.size() * options_.rounds >= options_.devices) {
      break;
    }
    // The objective takes devices to be busy from call to call; but a call with fewer slots
    // than devices leaves some idle, so its stages must become shorter.
    longest_s = slowest_stage_seconds(choice.costs, found->partition);
  }
  return found;
}

ROUNDPIPE_INLINE std::optional<Partition> StageSearch::try_partition(WorkingSetChoice const& choice,
                                                                     Buffering const& buffering,
                                                                     Bytes most,
                                                                     Bytes limit,
                                                                     double longest_s) const {
  PartitionProblem const problem{
      .costs = choice.costs,
      .devices = options_.devices,
      .micro_batches_per_call = options_.micro_batches_per_round * options_.rounds,
      .fits =
          [&](StageDirection direction, LayerRange range) {
            return choice.sizes.bytes(direction, range, buffering) <=
                       (range.count > 1 ? limit : most) &&
                   stage_seconds(choice.costs, direction, range) < longest_s;
          },
      .micro_batches_per_round = {options_.micro_batches_per_round}};
  try {
    return partition_(problem);
  } catch (Error const& error) {
    if (error.code() != Errc::over_budget) {
      throw;
    }
    return std::nullopt;
  }
}

ROUNDPIPE_INLINE StageSearch::Found StageSearch::refine(WorkingSetChoice const& choice,
                                                        Found found) const {
  constexpr std::size_t most_forecasts = 4;
  if (!yields_to_forecast_ || found.plan.partition.forward.empty()) {
    return found;  // nothing runs twice
  }
  auto const buffering = found.plan.memory.buffering;
  std::size_t forecasts = 0;
  for (auto& partition : StageRefinement(choice, buffering, options_).partitions()) {
    auto plan = lay_out_stages(model_, blocks_, std::move(partition), buffering, choice.set);
    if (plan.memory.bytes + options_.held_by(plan) > options_.device_memory ||
        !options_.host_has_room(plan)) {
      continue;
    }
    auto const seconds = forecast_(plan);
    if (seconds < found.seconds) {
      found = Found{std::move(plan), seconds};
    }
    if (++forecasts == most_forecasts) {
      break;
    }
  }
  return found;
}

ROUNDPIPE_INLINE Error StageSearch::refusal(WorkingSetChoice const& choice) const {
  auto const [layer, bytes] = choice.sizes.largest_layer(modes_.back());
  auto const held = options_.held_memory;
  auto const smallest = smallest_budget(choice);
  return Error(Errc::over_budget,
               "the device budget of " + std::to_string(options_.device_memory) +
                   " bytes is too small: " +
                   (held > 0 ? "the process holds " + std::to_string(held) + " there already, "
                             : std::string()) +
                   model_.name_of(layer) + " alone needs " + std::to_string(bytes) +
                   " bytes; the smallest budget that works is " + std::to_string(smallest) +
                   " bytes (" + format_bytes(smallest) + ")");
}

ROUNDPIPE_INLINE Bytes StageSearch::smallest_budget(WorkingSetChoice const& choice) const {
  auto const fits = [&](Bytes units) {
    return std::any_of(modes_.rbegin(), modes_.rend(), [&](Buffering const& buffering) {
      return try_buffering(choice, buffering, units * tensor_alignment_bytes).has_value();
    });
  };
  auto const least = choice.sizes.largest_layer(modes_.back()).second + options_.held_memory;
  auto low = std::max(options_.device_memory, least - 1) / tensor_alignment_bytes;
  auto high = low + low / 8 + 1;
  while (!fits(high)) {
    low = std::exchange(high, 2 * high - low);
  }
  while (high - low > 1) {
    auto const middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high * tensor_alignment_bytes;
}

}  // namespace detail

}  // namespace roundpipe
