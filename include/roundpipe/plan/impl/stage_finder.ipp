// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/stage_refinement.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::optional<FoundPlan> faster(std::optional<FoundPlan> a,
                                                 std::optional<FoundPlan> b) {
  return !b || (a && a->seconds <= b->seconds) ? std::move(a) : std::move(b);
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageFinder::refine(
    WorkingSetChoice const& choice,
    Buffering const& buffering,
    std::optional<FoundPlan> found) const {
  constexpr std::size_t most_worse = 2;  // in the order of refinement
  if (!forecast_ || !yields_to_forecast_ || (found && found->plan.partition.forward.empty())) {
    return found;  // nothing runs twice
  }
  auto const known = found ? std::optional(found->plan.partition) : std::nullopt;
  auto has_room = found && options_.host_has_room(found->plan);
  std::size_t worse = 0;
  auto const host_has_room = [&](Partition const& partition) {
    return options_.host_has_room(lay_out(partition, buffering, choice.set));
  };
  StageRefinement const refinement(choice, buffering, options_, turns_, held_by_stages(choice));
  auto const loses = [&](double least_s) {  // without a plan that has room, any will do
    return has_room && forecast_.loses(least_s, choice.set.overlaps_rounds());
  };
  for (auto& partition : refinement.partitions(host_has_room, loses)) {
    auto const is_known = known == partition;  // then it has its forecast
    auto other = is_known ? std::nullopt : evaluate(choice.set, buffering, std::move(partition));
    if (has_room && (is_known || (other && found->seconds <= other->seconds))) {
      if (++worse == most_worse) {
        break;
      }
    } else if (other) {
      found = std::move(other);
      has_room = true;
    }
  }
  return found;
}

ROUNDPIPE_INLINE std::optional<Partition> StageFinder::with_lengths(WorkingSetChoice const& choice,
                                                                    Buffering const& buffering,
                                                                    std::size_t fused,
                                                                    std::size_t longest) const {
  if (!yields_to_forecast_) {
    return std::nullopt;
  }
  return StageRefinement(choice, buffering, options_, turns_, held_by_stages(choice))
      .partition(fused, longest);
}

ROUNDPIPE_INLINE std::optional<Partition> StageFinder::even(std::size_t fused,
                                                            std::size_t forwards,
                                                            std::size_t backwards,
                                                            bool ends_short) const {
  auto const runs_all_devices = (forwards + 1 + backwards) * options_.rounds >= options_.devices;
  return yields_to_forecast_ && runs_all_devices
             ? even_partition(model_.size(), fused, forwards, backwards, ends_short)
             : std::nullopt;
}

ROUNDPIPE_INLINE std::optional<FoundPlan> StageFinder::best(WorkingSetChoice const& choice,
                                                            Buffering const& buffering) const {
  auto found = refine(choice, buffering, find(choice, buffering));
  return found && options_.host_has_room(found->plan) ? std::move(found) : std::nullopt;
}

ROUNDPIPE_INLINE std::optional<StagePlan> StageFinder::plan_of(WorkingSet const& set,
                                                               Buffering const& buffering,
                                                               Partition partition) const {
  auto plan = lay_out(std::move(partition), buffering, set);
  return has_room(plan) ? std::optional(std::move(plan)) : std::nullopt;
}

ROUNDPIPE_INLINE Bytes StageFinder::held_by_stages(WorkingSetChoice const& choice) const {
  if (!options_.held_for) {
    return options_.held_memory;
  }
  Partition each;
  for (std::size_t i = 0; i < model_.size(); ++i) {
    each.backward.push_back({model_.size() - 1 - i, 1});
    if (i + 1 < model_.size()) {
      each.forward.push_back({i, 1});
    }
  }
  return options_.held_by(lay_out_stages(model_, blocks_, std::move(each), {}, choice.set));
}

ROUNDPIPE_INLINE StagePlan StageFinder::lay_out(Partition partition,
                                                Buffering const& buffering,
                                                WorkingSet const& set,
                                                ResidentBlocks resident) const {
  auto turns = turns_(partition, set.overlaps_rounds());
  return lay_out_stages(
      model_, blocks_, std::move(partition), buffering, set, std::move(turns), std::move(resident));
}

ROUNDPIPE_INLINE FoundPlan StageFinder::keep_parameters(StagePlan plan) const {
  if (options_.keeps_parameters(static_cast<bool>(forecast_)) && plan.train.size() > 1) {
    plan = keep_blocks(plan, blocks_, [&](ResidentBlocks kept) -> std::optional<StagePlan> {
      auto other = lay_out(
          plan.partition, plan.memory.buffering, plan.train.front().working_set, std::move(kept));
      return has_room(other) ? std::optional(std::move(other)) : std::nullopt;
    });
  }
  auto const seconds = forecast_ ? forecast_(plan) : 0;
  return {std::move(plan), seconds};
}

ROUNDPIPE_INLINE OverBudget StageFinder::refusal(WorkingSetChoice const& choice) const {
  auto const [layer, bytes] = choice.sizes.largest_layer(modes_.back());
  auto const held = options_.held_memory;
  auto text = "the device budget of " + std::to_string(options_.device_memory) +
              " bytes is too small: " +
              (held > 0 ? "the process holds " + std::to_string(held) + " there already, "
                        : std::string()) +
              model_.name_of(layer) + " alone needs " + std::to_string(bytes) + " bytes";
  std::vector<LedgerLine> ledger;
  Bytes smallest = 0;
  if (options_.names_least_budget) {
    auto least = std::max(options_.device_memory + 1, bytes + held);
    if (yields_to_forecast_) {  // it finds stages where Partitioner does, but takes longer
      auto const exact = [](PartitionProblem const& problem) {
        return Partitioner{}.partition(problem);
      };
      auto const found = smallest_budget(exact, choice, least);
      least = found ? found->budget : least;
    }
    if (auto const found = smallest_budget(partition_, choice, least)) {
      smallest = found->budget + (held > 0 ? 1_MiB : 0);  // the next process holds more: 64 KiB
      ledger = device_ledger(found->plan, options_.held_by(found->plan));
      text += "; the smallest budget that works is " + std::to_string(smallest) + " bytes (" +
              format_bytes(smallest) + "): " + ledger_list(ledger, LedgerLine::Space::device);
      if (!options_.host_has_room(found->plan)) {
        text +=
            "; it takes more of the host than its budget of " + format_bytes(options_.host_memory);
      }
    } else {
      text += "; the partition policy finds stages for no budget";
    }
  }
  if (auto const unfit = unfit_answer(choice)) {
    text = broken_rule("PartitionPolicy::partition", 1, *unfit + "; " + text).message();
  }
  return {std::move(text), LedgerLine::Space::device, smallest, std::move(ledger)};
}

ROUNDPIPE_INLINE std::optional<std::string> StageFinder::unfit_answer(
    WorkingSetChoice const& choice) const {
  auto const most = options_.device_memory - std::min(options_.device_memory, options_.held_memory);
  auto const problem =
      problem_of(choice, modes_.back(), most, most, std::numeric_limits<double>::infinity());
  auto const answer = partition_if_any([&] { return partition_(problem); });
  return answer ? unfit_stage(problem, *answer) : std::nullopt;
}

ROUNDPIPE_INLINE std::optional<StageFinder::LeastPlan> StageFinder::smallest_budget(
    PartitionFunction const& partition, WorkingSetChoice const& choice, Bytes least) const {
  std::optional<LeastPlan> smallest;
  std::span<Buffering const> modes(&modes_.back(), 1);  // the others seldom fit where it does not
  auto const fits = [&](Bytes units) {
    auto const budget = units * tensor_alignment_bytes;
    return std::ranges::any_of(modes, [&](Buffering const& buffering) {
      auto plan = fit(partition, choice, buffering, budget);
      if (plan) {
        smallest = {budget, *std::move(plan)};
      }
      return plan.has_value();
    });
  };
  auto const begin = (least + tensor_alignment_bytes - 1) / tensor_alignment_bytes;
  auto high = begin;
  auto low = high - 1;
  auto const bisect = [&] {
    while (high - low > 1) {
      auto const middle = low + (high - low) / 2;
      (fits(middle) ? high : low) = middle;
    }
  };
  constexpr Bytes most = (Bytes{1} << 60) / tensor_alignment_bytes;
  while (!fits(high)) {
    if (high > most) {
      return std::nullopt;
    }
    low = std::exchange(high, high + std::max(high / 8, 2 * (high - low)));
  }
  bisect();
  modes = modes_;
  if (high > begin && fits(high - 1)) {
    low = begin - 1;
    --high;
    bisect();
  }
  return smallest;  // of the last budget that did
}

ROUNDPIPE_INLINE std::optional<StagePlan> StageFinder::fit(PartitionFunction const& partition,
                                                           WorkingSetChoice const& choice,
                                                           Buffering const& buffering,
                                                           Bytes budget) const {
  std::optional<StagePlan> found;
  auto most = budget - std::min(budget, options_.held_memory);
  auto limit = most;
  Bytes of_one = 0;  // the largest stage of one layer of the partitions that most allows
  auto longest_s = std::numeric_limits<double>::infinity();
  while (auto stages = cut(partition, choice, buffering, most, limit, longest_s)) {
    auto plan = lay_out(*std::move(stages), buffering, choice.set);
    if (plan.memory.bytes + options_.held_by(plan) > budget) {
      // Stages that fit one by one may not fit together: rings of activations are as large as the
      // largest stage needs, and stages that follow each other are live at once. A lower limit for
      // stages that can be cut gives the next partition to try, and at the end a lower one for
      // stages of one layer, too; none between is left out, so that a larger budget never fails
      // where a smaller one works.
      auto const largest = choice.sizes.largest_stages(plan.partition, buffering);
      of_one = std::max(of_one, largest.of_one);
      if (largest.of_several > limit || of_one > most || (largest.of_several == 0 && of_one == 0)) {
        break;  // the policy does not heed limits, or stages need nothing
      }
      if (largest.of_several == 0) {
        most = std::exchange(of_one, 0) - 1;
      }
      limit = largest.of_several > 0 ? largest.of_several - 1 : most;
      continue;
    }
    found = std::move(plan);
    if (found->partition.size() * options_.rounds >= options_.devices) {
      break;
    }
    // The objective takes devices to be busy from call to call; but a call with fewer slots
    // than devices leaves some idle, so its stages must become shorter.
    auto const slowest_s = slowest_stage_seconds(choice.costs, found->partition);
    if (!(slowest_s < longest_s)) {
      break;  // the policy does not heed limits
    }
    longest_s = slowest_s;
  }
  return found;
}

ROUNDPIPE_INLINE PartitionProblem StageFinder::problem_of(WorkingSetChoice const& choice,
                                                          Buffering const& buffering,
                                                          Bytes most,
                                                          Bytes limit,
                                                          double longest_s) const {
  return {.costs = choice.costs,
          .devices = options_.devices,
          .micro_batches_per_call = options_.micro_batches_per_round * options_.rounds,
          .fits =
              [&choice, &buffering, most, limit, longest_s](StageDirection direction,
                                                            LayerRange range) {
                return choice.sizes.bytes(direction, range, buffering) <=
                           (range.count > 1 ? limit : most) &&
                       stage_seconds(choice.costs, direction, range) < longest_s;
              },
          .micro_batches_per_round = {options_.micro_batches_per_round}};
}

ROUNDPIPE_INLINE std::optional<Partition> StageFinder::cut(PartitionFunction const& partition,
                                                           WorkingSetChoice const& choice,
                                                           Buffering const& buffering,
                                                           Bytes most,
                                                           Bytes limit,
                                                           double longest_s) const {
  auto const problem = problem_of(choice, buffering, most, limit, longest_s);
  return partition_if_any([&] { return partition(problem); });
}

}  // namespace detail

}  // namespace roundpipe
