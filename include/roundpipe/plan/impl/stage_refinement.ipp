// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/memory/stage_region.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/slot_simulation.hpp>
#include <roundpipe/plan/stage_refinement.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::optional<Partition> even_partition(std::size_t layers,
                                                         std::size_t fused,
                                                         std::size_t forwards,
                                                         std::size_t backwards,
                                                         bool ends_short) {
  auto const rest = layers - std::min(fused, layers);
  auto const is_possible = [&](std::size_t stages) { return 0 < stages && stages <= rest; };
  if (fused == 0 || !is_possible(forwards) || !is_possible(backwards)) {
    return std::nullopt;
  }
  auto const length = [&](std::size_t stage, std::size_t stages) {
    return rest / stages + (stages - stage <= rest % stages ? 1 : 0);
  };
  Partition partition{.forward = {}, .backward = {{rest, fused}}};
  std::size_t at = 0;
  for (std::size_t i = 0; i < forwards; ++i) {
    partition.forward.push_back({at, length(i, forwards)});
    at += partition.forward.back().count;
  }
  for (std::size_t i = 0; i < backwards; ++i) {
    auto const count = length(ends_short ? backwards - 1 - i : i, backwards);
    at -= count;
    partition.backward.push_back({at, count});
  }
  return partition;
}

ROUNDPIPE_INLINE std::vector<Partition> StageRefinement::partitions(
    std::function<bool(Partition const&)> const& host_has_room,
    std::function<bool(double)> const& loses) const {
  auto const micro_batches = options_.micro_batches_per_round * options_.rounds;
  auto const one_by_one = choice_.set.checkpoints() == Checkpoints::layers;
  SlotSimulation simulation(
      choice_.costs, options_.devices, micro_batches, {.recomputes_one_by_one = one_by_one});
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
  for (std::size_t n = 1; n < layers(); ++n) {
    std::vector<Found> with_fused;
    auto const rest = layers() - n;
    if (loses(least_seconds({rest, n}))) {
      continue;
    }
    for (std::size_t k = 1; k <= rest; ++k) {
      auto const stages = (rest + k - 1) / k;
      if (k > (rest + stages - 1) / stages) {
        continue;  // a shorter length takes as few stages
      }
      if (auto partition = this->partition(n, k)) {
        auto const seconds = score(*partition);
        with_fused.push_back({*std::move(partition), seconds});
      }
    }
    std::stable_sort(with_fused.begin(), with_fused.end());
    auto const best = std::ranges::find_if(
        with_fused, [&](Found const& each) { return host_has_room(each.partition); });
    if (best != with_fused.end()) {
      found.push_back(std::move(*best));
    }
  }
  std::stable_sort(found.begin(), found.end());
  std::vector<Partition> result;
  for (auto& each : found) {
    result.push_back(std::move(each.partition));
  }
  return result;
}

ROUNDPIPE_INLINE std::optional<Partition> StageRefinement::partition(std::size_t last,
                                                                     std::size_t longest) const {
  if (last == 0 || last >= layers() || longest == 0 || longest > layers() - last) {
    return std::nullopt;
  }
  LayerRange const fused{layers() - last, last};
  auto most = least(fused);
  most.include(needs(StageDirection::backward, {fused.first - longest, longest}));
  auto partition = most.bytes(buffering_) <= budget_ ? fit(fused, longest, most) : std::nullopt;
  return partition && partition->size() * options_.rounds >= options_.devices ? partition
                                                                              : std::nullopt;
}

ROUNDPIPE_INLINE double StageRefinement::least_seconds(LayerRange fused) const {
  auto const of_stages = choice_.set.checkpoints() == Checkpoints::stages;
  double micro_batch_s = 0;
  for (std::size_t i = 0; i < layers(); ++i) {
    auto const& cost = choice_.least[i];
    micro_batch_s += cost.forward_s + cost.backward_s;
    if (i < fused.first) {  // each may be the last layer of its stage, whose output nobody reads
      micro_batch_s += of_stages ? cost.replaying_s(0) : cost.recomputing_s();
    }
  }
  return micro_batch_s * static_cast<double>(options_.micro_batches_per_round * options_.rounds) /
         static_cast<double>(options_.devices);
}

ROUNDPIPE_INLINE StageNeeds StageRefinement::least(LayerRange fused) const {
  auto most = needs(StageDirection::backward, fused);
  for (std::size_t i = 0; i < fused.first; ++i) {
    most.include(needs(StageDirection::forward, {i, 1}));
    most.include(needs(StageDirection::backward, {i, 1}));
  }
  return most;
}

ROUNDPIPE_INLINE std::size_t StageRefinement::longest_forward(StageNeeds const& most,
                                                              LayerRange fused) const {
  std::size_t longest = 1;
  while (longest < fused.first) {
    auto more = most;
    more.include(needs(StageDirection::forward, {fused.first - longest - 1, longest + 1}));
    if (more.bytes(buffering_) > budget_) {
      break;
    }
    ++longest;
  }
  return longest;
}

ROUNDPIPE_INLINE std::size_t StageRefinement::forward_beside(LayerRange fused,
                                                             std::size_t backward) {
  auto const turns = 1 + (fused.first + backward - 1) / backward;
  return (fused.first + turns - 1) / turns;
}

ROUNDPIPE_INLINE std::optional<Partition> StageRefinement::fit(LayerRange fused,
                                                               std::size_t backward,
                                                               StageNeeds const& most) const {
  auto const fitting = [&](std::size_t forward) {
    Limits const limits{limit_of(StageDirection::forward, fused, forward),
                        limit_of(StageDirection::backward, fused, backward)};
    auto const fits = [&](Partition const& partition) { return bytes_of(partition) <= budget_; };
    auto partition = cut(fused, limits, &most);
    if (!partition || fits(*partition)) {
      return partition;
    }
    // Shared or special layers, as the first one, may make a stage larger than others of its
    // length. Where none is, these stages are the best once more.
    partition = has_larger(*partition, limits) ? cut(fused, limits, nullptr) : std::nullopt;
    return partition && fits(*partition) ? partition : std::nullopt;
  };
  if (choice_.set.overlaps_rounds()) {
    return fitting(forward_beside(fused, backward));
  }
  auto end = longest_forward(most, fused) + 1;
  auto best = fitting(end - 1);
  for (std::size_t fits = 0; !best && end - fits > 1;) {
    auto const middle = fits + (end - fits) / 2;
    auto partition = fitting(middle);
    if (partition) {
      fits = middle;
      best = std::move(partition);
    } else {
      end = middle;
    }
  }
  return best;
}

ROUNDPIPE_INLINE bool StageRefinement::has_larger(Partition const& partition,
                                                  Limits const& limits) const {
  auto const any_larger = [&](StageDirection direction, std::span<LayerRange const> stages) {
    return std::ranges::any_of(stages, [&](LayerRange range) {
      return range.count > 1 && !is_within(limits, direction, range);
    });
  };
  return any_larger(StageDirection::forward, partition.forward) ||
         any_larger(StageDirection::backward, std::span(partition.backward).subspan(1));
}

ROUNDPIPE_INLINE std::optional<Partition> StageRefinement::cut(LayerRange fused,
                                                               Limits const& limits,
                                                               StageNeeds const* any) const {
  auto const is_short = [&](StageDirection direction, LayerRange range) {
    return any != nullptr && range.count <= limits.of(direction).count &&
           choice_.sizes.needs(direction, range).within_region(*any, buffering_);
  };
  // To the partitioner, the fused stage is one layer, which no other joins.
  auto const first = choice_.costs.begin();
  PartitionProblem problem{
      .costs = {first, first + static_cast<std::ptrdiff_t>(fused.first)},
      .devices = options_.devices,
      .micro_batches_per_call = options_.micro_batches_per_round * options_.rounds,
      .fits =
          [&](StageDirection direction, LayerRange range) {
            return range.count == 1 ||
                   (range.end() <= fused.first &&
                    (is_short(direction, range) || is_within(limits, direction, range)));
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

ROUNDPIPE_INLINE Bytes StageRefinement::bytes_of(Partition const& partition) const {
  std::vector<RegionNeeds> stages;
  StageNeeds rings;
  auto const add = [&](StageDirection direction, LayerRange range) {
    auto const& stage = choice_.sizes.needs(direction, range);
    stages.push_back(stage.region());
    rings.include(stage);
  };
  auto const add_forward = [&] {
    for (auto const& range : partition.forward) {
      add(StageDirection::forward, range);
    }
  };
  add_forward();
  for (auto const& range : partition.backward) {
    add(StageDirection::backward, range);
  }
  add_forward();  // of an evaluation, as its last stage
  add(StageDirection::forward, partition.backward.front());
  auto const region =
      lay_out_region(stages, turns_of(partition), buffering_.parameters, buffering_.gradients);
  rings.parameters = rings.gradients = rings.scratch = 0;
  return region.bytes + rings.bytes(buffering_);
}

ROUNDPIPE_INLINE std::vector<DeviceTurns> const& StageRefinement::turns_of(
    Partition const& partition) const {
  auto& known = known_turns_[{partition.forward.size(), partition.backward.size()}];
  if (known.empty()) {
    known = turns_(partition, choice_.set.overlaps_rounds());
  }
  return known;
}

}  // namespace detail

}  // namespace roundpipe
