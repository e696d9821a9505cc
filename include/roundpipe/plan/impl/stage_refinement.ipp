// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/slot_simulation.hpp>
#include <roundpipe/plan/stage_refinement.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<Partition> StageRefinement::partitions() const {
  auto const micro_batches = options_.micro_batches_per_round * options_.rounds;
  // Layers that are recomputed one by one are so after the gradient has arrived, but for the last.
  auto const one_by_one = choice_.set.checkpoints() == Checkpoints::layers;
  SlotSimulation simulation(
      choice_.costs, options_.devices, micro_batches, {.recompute_waits_for_gradient = one_by_one});
  struct Found {
    Partition partition;
    double score = 0;

    bool operator<(Found const& other) const { return score < other.score; }
  };
  // Of equals, the fewest stages win: the simulation leaves out the copies that one more costs.
  auto const score = [&](Partition const& partition) {
    constexpr double stage_share = 1e-5;
    auto const call = simulation.simulate(partition, options_.micro_batches_per_round);
    return call.seconds * (1 + stage_share * static_cast<double>(partition.size()));
  };
  std::vector<Found> found;
  auto const budget =
      options_.device_memory - std::min(options_.device_memory, options_.held_memory);
  for (std::size_t n = 1; n < layers(); ++n) {
    LayerRange const fused{layers() - n, n};
    auto const by_itself = least(fused);
    if (by_itself.bytes(buffering_) > budget) {
      break;
    }
    std::optional<Found> best;
    for (std::size_t k = 1; k <= fused.first; ++k) {
      auto most = by_itself;
      most.include(choice_.sizes.needs(StageDirection::backward, {fused.first - k, k}));
      if (most.bytes(buffering_) > budget) {
        break;
      }
      most = choice_.set.overlaps_rounds() ? with_forward_beside(most, fused, k)
                                           : with_forward(most, fused, budget);
      if (most.bytes(buffering_) > budget) {
        break;
      }
      auto partition = cut(fused, most);
      if (!partition || partition->size() * options_.rounds < options_.devices) {
        continue;
      }
      auto const found_score = score(*partition);
      Found each{*std::move(partition), found_score};
      if (!best || each < *best) {
        best = std::move(each);
      }
    }
    if (best) {
      found.push_back(*std::move(best));
    }
  }
  std::stable_sort(found.begin(), found.end());
  std::vector<Partition> result;
  for (auto& each : found) {
    result.push_back(std::move(each.partition));
  }
  return result;
}

ROUNDPIPE_INLINE StageNeeds StageRefinement::least(LayerRange fused) const {
  auto needs = choice_.sizes.needs(StageDirection::backward, fused);
  for (std::size_t i = 0; i < fused.first; ++i) {
    needs.include(choice_.sizes.needs(StageDirection::forward, {i, 1}));
    needs.include(choice_.sizes.needs(StageDirection::backward, {i, 1}));
  }
  return needs;
}

ROUNDPIPE_INLINE StageNeeds StageRefinement::with_forward(StageNeeds most,
                                                          LayerRange fused,
                                                          Bytes budget) const {
  for (std::size_t k = 1; k <= fused.first; ++k) {
    auto more = most;
    more.include(choice_.sizes.needs(StageDirection::forward, {fused.first - k, k}));
    if (more.bytes(buffering_) > budget) {
      break;
    }
    most = more;
  }
  return most;
}

ROUNDPIPE_INLINE StageNeeds StageRefinement::with_forward_beside(StageNeeds most,
                                                                 LayerRange fused,
                                                                 std::size_t backward) const {
  auto const turns = 1 + (fused.first + backward - 1) / backward;
  auto const k = (fused.first + turns - 1) / turns;
  most.include(choice_.sizes.needs(StageDirection::forward, {fused.first - k, k}));
  return most;
}

ROUNDPIPE_INLINE std::optional<Partition> StageRefinement::cut(LayerRange fused,
                                                               StageNeeds const& most) const {
  // To the partitioner, the fused stage is one layer, which no other joins.
  auto const first = choice_.costs.begin();
  PartitionProblem problem{
      .costs = {first, first + static_cast<std::ptrdiff_t>(fused.first)},
      .devices = options_.devices,
      .micro_batches_per_call = options_.micro_batches_per_round * options_.rounds,
      .fits =
          [&](StageDirection direction, LayerRange range) {
            return range.end() > fused.first ? range.count == 1
                                             : choice_.sizes.needs(direction, range).within(most);
          },
      .micro_batches_per_round = {options_.micro_batches_per_round}};
  auto& last = problem.costs.emplace_back();
  for (auto i = fused.first; i < fused.end(); ++i) {
    last.forward_s += choice_.costs[i].forward_s;
    last.backward_s += choice_.costs[i].backward_s;
  }
  auto partition = partition_if_any([&] { return Partitioner{}.partition(problem); });
  if (partition) {
    partition->backward.front() = fused;
  }
  return partition;
}

}  // namespace detail

}  // namespace roundpipe
