// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/stage_moves.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE StageSizes StageSizes::of(Partition const& partition) {
  StageSizes sizes;
  for (auto const& range : partition.forward) {
    sizes.forward.push_back(range.count);
  }
  for (auto const& range : partition.backward) {
    sizes.backward.push_back(range.count);
  }
  return sizes;
}

ROUNDPIPE_INLINE Partition StageSizes::partition(std::size_t layers) const {
  Partition partition;
  std::size_t first = 0;
  for (auto const count : forward) {
    partition.forward.push_back({first, count});
    first += count;
  }
  auto end = layers;
  for (auto const count : backward) {
    end -= count;
    partition.backward.push_back({end, count});
  }
  return partition;
}

ROUNDPIPE_INLINE StageSizes const& StageMoves::run() {
  do {
    moved_ = false;
    for (auto const side : {&StageSizes::forward, &StageSizes::backward}) {
      shift(side);
      cut_and_join(side);
      sort(side);
    }
    resize_fused();
  } while (moved_ && !stopped_);
  return best_;
}

ROUNDPIPE_INLINE bool StageMoves::attempt(StageSizes sizes) {
  auto const verdict = stopped_ ? Verdict::stop : judge_(sizes);
  stopped_ = verdict == Verdict::stop;
  if (verdict != Verdict::better) {
    return false;
  }
  best_ = std::move(sizes);
  moved_ = true;
  return true;
}

ROUNDPIPE_INLINE void StageMoves::shift(Side side) {
  auto const begin = begin_of(side);
  for (std::size_t distance = 1; begin + distance < (best_.*side).size(); ++distance) {
    for (auto i = begin; i + distance < (best_.*side).size() && !stopped_; ++i) {
      for (auto const& [from, to] : {std::pair{i, i + distance}, std::pair{i + distance, i}}) {
        if ((best_.*side)[from] > 1) {
          auto sizes = best_;
          --(sizes.*side)[from];
          ++(sizes.*side)[to];
          attempt(std::move(sizes));
        }
      }
    }
  }
}

ROUNDPIPE_INLINE void StageMoves::cut_and_join(Side side) {
  for (auto i = begin_of(side); i < (best_.*side).size() && !stopped_; ++i) {
    auto const place = static_cast<std::ptrdiff_t>(i);
    for (std::size_t part = 1; part < (best_.*side)[i]; ++part) {
      auto sizes = best_;
      (sizes.*side)[i] -= part;
      (sizes.*side).insert((sizes.*side).begin() + place, part);
      if (attempt(std::move(sizes))) {
        break;
      }
    }
    if (i + 1 < (best_.*side).size()) {
      auto sizes = best_;
      (sizes.*side)[i + 1] += (sizes.*side)[i];
      (sizes.*side).erase((sizes.*side).begin() + place);
      attempt(std::move(sizes));
    }
  }
}

ROUNDPIPE_INLINE void StageMoves::sort(Side side) {
  auto const begin = static_cast<std::ptrdiff_t>(begin_of(side));
  for (auto const up : {true, false}) {
    auto sizes = best_;
    auto const first = (sizes.*side).begin() + begin;
    if (up) {
      std::sort(first, (sizes.*side).end());
    } else {
      std::sort(first, (sizes.*side).end(), std::greater<>{});
    }
    if (sizes.*side != best_.*side) {
      attempt(std::move(sizes));
    }
  }
}

ROUNDPIPE_INLINE void StageMoves::resize_fused() {
  auto const take = [](std::vector<std::size_t>& stages, std::size_t i) {
    if (--stages[i] == 0) {
      stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(i));
    }
  };
  if (!best_.forward.empty()) {
    auto sizes = best_;
    ++sizes.backward[0];
    take(sizes.forward, sizes.forward.size() - 1);
    take(sizes.backward, 1);
    attempt(std::move(sizes));
  }
  for (auto const apart : {false, true}) {
    if (best_.backward[0] == 1) {
      break;
    }
    auto sizes = best_;
    --sizes.backward[0];
    if (apart || sizes.forward.empty()) {
      sizes.forward.push_back(1);
      sizes.backward.insert(sizes.backward.begin() + 1, 1);
    } else {
      ++sizes.forward.back();
      ++sizes.backward[1];
    }
    attempt(std::move(sizes));
  }
}

}  // namespace detail

}  // namespace roundpipe
