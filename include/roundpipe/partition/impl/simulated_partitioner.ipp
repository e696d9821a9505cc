// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/even_cuts.hpp>
#include <roundpipe/partition/partition_check.hpp>
#include <roundpipe/partition/partition_objective.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/round_partition.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/partition/slot_simulation.hpp>
#include <roundpipe/partition/stage_moves.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE RoundPartition SimulatedSearch::run(Partition const& start) {
  for (auto const round : rounds_) {
    consider(start, round);
  }
  try_even_cuts();
  std::stable_sort(found_.begin(), found_.end(), [](Found const& a, Found const& b) {
    return a.score < b.score;
  });
  found_.resize(std::min(found_.size(), climbs));
  for (std::size_t i = 0; i < found_.size(); ++i) {
    climb(found_[i], simulation_.tasks() + climb_tasks / found_.size());
  }
  return finish();
}

ROUNDPIPE_INLINE void SimulatedSearch::consider(Partition const& partition, std::size_t round) {
  found_.push_back({StageSizes::of(partition), round, score(partition, round)});
  best_s_ = std::min(best_s_, found_.back().score);
}

ROUNDPIPE_INLINE void SimulatedSearch::try_even_cuts() {
  StageTicks const ticks(problem_.costs);
  EvenCuts const forward(problem_, ticks, StageDirection::forward);
  EvenCuts const backward(problem_, ticks, StageDirection::backward);
  for (auto const& shape : shapes()) {
    if (simulation_.tasks() > even_tasks) {
      break;
    }
    if (shape.least_s > best_s_) {
      continue;
    }
    LayerRange const last{layers() - shape.fused, shape.fused};
    auto const before = forward.cut(last.first, shape.forward);
    auto const after = backward.cut(last.first, shape.backward);
    if (!before || !after) {
      continue;
    }
    Partition candidate{*before, {last}};
    candidate.backward.insert(candidate.backward.end(), after->begin(), after->end());
    for (auto const round : rounds_) {
      consider(candidate, round);
    }
  }
}

ROUNDPIPE_INLINE std::vector<SimulatedSearch::Shape> SimulatedSearch::shapes() const {
  std::span const costs(problem_.costs);
  auto const n = static_cast<double>(problem_.devices);
  auto const m = static_cast<double>(problem_.micro_batches_per_call);
  auto const next = [](std::size_t stages) { return stages + 1 + stages / 96; };
  std::vector<Shape> result;
  for (std::size_t fused = 1; fused <= layers(); ++fused) {
    auto const before = layers() - fused;
    if (problem_.fits && !problem_.fits(StageDirection::backward, {before, fused})) {
      continue;
    }
    auto const forward_s = stage_seconds(costs, StageDirection::forward, {0, before});
    auto const backward_s = stage_seconds(costs, StageDirection::backward, {0, before});
    auto const fused_s = stage_seconds(costs, StageDirection::backward, {before, fused});
    auto const least_s = m / n * (forward_s + backward_s + fused_s);
    auto const add = [&](std::size_t forward, std::size_t backward, double slowest_s) {
      if (!has_too_few(forward + 1 + backward)) {
        auto const fill_s = asynchronous_ ? 0 : (n - 1) * std::max(slowest_s, fused_s);
        result.push_back({fused, forward, backward, least_s, least_s + fill_s});
      }
    };
    if (before == 0) {
      add(0, 0, 0);
    }
    for (std::size_t b = 1; b <= before; b = next(b)) {
      auto const stage_s = backward_s / static_cast<double>(b);
      if (b > 1 && fused_s > longest_fused * stage_s) {
        break;
      }
      // So many forward stages take as long as the backward stages.
      auto const even = stage_s > 0 ? forward_s / stage_s : 1;
      auto const limit = [&](double stages) {
        return static_cast<std::size_t>(std::clamp(stages, 1.0, static_cast<double>(before)));
      };
      for (auto f = limit(std::ceil(even / unevenness)); f <= limit(even * unevenness);
           f = next(f)) {
        add(f, b, std::max(stage_s, forward_s / static_cast<double>(f)));
      }
    }
  }
  std::stable_sort(result.begin(), result.end(), [](Shape const& a, Shape const& b) {
    return a.estimate_s < b.estimate_s;
  });
  return result;
}

ROUNDPIPE_INLINE void SimulatedSearch::climb(Found& start, std::size_t most_tasks) {
  using enum StageMoves::Verdict;
  StageMoves moves(start.sizes, [&](StageSizes const& sizes) {
    if (simulation_.tasks() > most_tasks) {
      return stop;
    }
    auto const partition = sizes.partition(layers());
    if (has_too_few(partition.size()) || !fits(problem_, partition)) {
      return no_better;
    }
    auto const found = score(partition, start.round);
    if (found >= start.score * (1 - 1e-9)) {
      return no_better;
    }
    start.score = found;
    return better;
  });
  start.sizes = moves.run();
}

ROUNDPIPE_INLINE RoundPartition SimulatedSearch::finish() {
  auto const& best =
      *std::min_element(found_.begin(), found_.end(), [](Found const& a, Found const& b) {
        return a.score < b.score;
      });
  auto partition = best.sizes.partition(layers());
  auto const call = simulation_.simulate(partition, best.round);
  return {std::move(partition), best.round, call};
}

}  // namespace detail

}  // namespace roundpipe
