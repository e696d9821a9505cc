// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/even_stages.hpp>
#include <roundpipe/partition/fewest_stages.hpp>
#include <roundpipe/partition/partition_search.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::optional<std::size_t> PartitionSearch::misfit(StageDirection direction) {
  auto& stages = direction == StageDirection::forward ? forward_ : backward_;
  for (std::size_t layer = 0; layer + 1 < ticks_.layers(); ++layer) {
    if (!stages.fits(layer, layer + 1)) {
      return layer;
    }
  }
  auto const last = ticks_.layers() - 1;  // it is always in the fused stage
  auto const fits = direction == StageDirection::forward || fused_fits(last);
  return fits ? std::nullopt : std::optional(last);
}

ROUNDPIPE_INLINE std::optional<Partition> PartitionSearch::run() {
  begin();
  if (!best_) {
    return std::nullopt;
  }
  // The more stages, the shorter t_max must be to be as good as the best so far: `promising` bounds
  // it, and falls. If a cut within that bound needs s stages, no number below s will do.
  for (std::size_t stages = 1; stages < 2 * ticks_.layers();) {
    auto const t_max = promising(stages);
    if (t_max < ticks_.slowest_layer()) {
      break;
    }
    if (auto const least = at_least(t_max); least > stages) {
      stages = least;
      continue;
    }
    auto const found = cut(t_max);
    if (!found) {
      break;  // what does not fit now does not fit with a shorter t_max either
    }
    if (found->stages() <= stages) {
      consider(shortest(stages, *found));
      ++stages;
    } else {
      stages = found->stages();
    }
  }
  return result();
}

ROUNDPIPE_INLINE double PartitionSearch::weight(std::size_t stages) const noexcept {
  auto const n = static_cast<double>(problem_.devices);
  return static_cast<double>(problem_.micro_batches_per_call) * static_cast<double>(stages) +
         n * (n - 1);
}

ROUNDPIPE_INLINE Ticks PartitionSearch::promising(std::size_t stages) const {
  auto const whole = ticks_.whole_model();
  auto const t_max = value(*best_) / weight(stages) * (1 + 1e-14);
  return t_max < static_cast<double>(whole) ? static_cast<Ticks>(t_max) + 1 : whole;
}

ROUNDPIPE_INLINE std::size_t PartitionSearch::at_least(Ticks t_max) const {
  auto const before = std::min(ticks_.first_fused(t_max), ticks_.layers() - 1);
  auto const parts = [&](StageDirection direction) {
    auto const sum = ticks_.stage(direction, 0, before);
    return sum > 0 ? static_cast<std::size_t>((sum - 1) / t_max + 1) : 0;
  };
  return parts(StageDirection::forward) + 1 + parts(StageDirection::backward);
}

ROUNDPIPE_INLINE void PartitionSearch::consider(Cut const& cut) {
  if (!best_ || value(cut) < value(*best_) ||
      (value(cut) == value(*best_) && cut.t_max < best_->t_max)) {
    best_ = cut;
  }
}

ROUNDPIPE_INLINE void PartitionSearch::begin() {
  auto const whole = ticks_.whole_model();
  for (auto t_max = ticks_.slowest_layer();; t_max += t_max / 8 + 1) {
    t_max = std::min(t_max, whole);
    if (!best_ || weight(at_least(t_max)) * static_cast<double>(t_max) < value(*best_)) {
      if (auto const found = cut(t_max)) {
        consider(*found);
      }
    }
    // Much longer limits than a cut uses seldom give a better one, and run() looks at them, too.
    if (t_max == whole || (best_ && t_max / 2 > best_->t_max)) {
      break;
    }
  }
}

ROUNDPIPE_INLINE PartitionSearch::Cut PartitionSearch::shortest(std::size_t stages, Cut enough) {
  auto low = ticks_.slowest_layer();
  while (low < enough.t_max) {
    auto const t_max = low + (enough.t_max - low) / 2;
    auto const found = cut(t_max);
    if (found && found->stages() <= stages) {
      enough = *found;
    } else {
      low = next_;
    }
  }
  return enough;
}

ROUNDPIPE_INLINE bool PartitionSearch::fused_fits(std::size_t first) {
  auto& fit = fused_fits_[first];
  if (fit == Fit::unknown) {
    LayerRange const range{first, ticks_.layers() - first};
    fit = !problem_.fits || problem_.fits(StageDirection::backward, range) ? Fit::yes : Fit::no;
  }
  return fit == Fit::yes;
}

ROUNDPIPE_INLINE std::optional<PartitionSearch::Cut> PartitionSearch::cut(Ticks t_max) {
  auto const first_fused = ticks_.first_fused(t_max);
  next_ = std::min(forward_.cover(t_max), backward_.cover(t_max));
  if (first_fused > 0) {
    next_ = std::min(next_, ticks_.fused(first_fused - 1));
  }
  std::optional<Cut> best;
  for (auto first = first_fused; first < ticks_.layers(); ++first) {
    if (forward_.reaches(first) && backward_.reaches(first)) {
      Cut const cut{first, forward_.stages(first), backward_.stages(first), t_max};
      if ((!best || cut.stages() < best->stages()) && fused_fits(first)) {
        best = cut;
      }
    }
  }
  if (best) {
    best->t_max = std::max({ticks_.fused(best->fused_first),
                            forward_.slowest(best->fused_first),
                            backward_.slowest(best->fused_first)});
  }
  return best;
}

ROUNDPIPE_INLINE Partition PartitionSearch::result() {
  auto const chosen = *cut(best_->t_max);  // fills the tables for this t_max
  auto const first = chosen.fused_first;
  Partition result{even_stages(forward_, first, chosen.t_max),
                   even_stages(backward_, first, chosen.t_max)};
  result.backward.insert(result.backward.begin(), {first, ticks_.layers() - first});
  return result;
}

}  // namespace detail

}  // namespace roundpipe
