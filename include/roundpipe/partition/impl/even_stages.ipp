// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/partition/even_stages.hpp>
#include <roundpipe/partition/fewest_stages.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<LayerRange> even_stages(FewestStages& fewest,
                                                     std::size_t count,
                                                     Ticks t_max) {
  auto const forward = fewest.direction() == StageDirection::forward;
  constexpr auto none = std::numeric_limits<double>::infinity();
  // By place: of the stages that come later in execution order, and where the next of them ends.
  std::vector<double> squares(count + 1, none);
  std::vector<std::size_t> next(count + 1);
  auto const try_stage = [&](std::size_t first, std::size_t end) {
    auto const from = forward ? first : end;
    auto const to = forward ? end : first;
    if (!fewest.reaches(first) || fewest.stages(first) + 1 != fewest.stages(end) ||
        squares[to] == none) {
      return;
    }
    auto const ticks = fewest.ticks(first, end);
    auto const share = ticks > 0 ? static_cast<double>(ticks) / static_cast<double>(t_max) : 0;
    auto const sum = share * share + squares[to];
    // Sums are rounded: those that differ in the last digits only are equal.
    auto const better =
        forward ? sum < squares[from] * (1 - 1e-9) : sum <= squares[from] * (1 + 1e-9);
    if (better && fewest.fits(first, end)) {
      squares[from] = sum;
      next[from] = to;
    }
  };
  // The last place in execution order first, shorter stages before longer ones.
  if (forward) {
    squares[count] = 0;
    for (auto first = count; first-- > 0;) {
      for (auto end = first + 1; end <= std::min(fewest.last_end(first), count); ++end) {
        try_stage(first, end);
      }
    }
  } else {
    squares[0] = 0;
    for (std::size_t end = 1; end <= count; ++end) {
      for (auto first = end; first-- > 0 && fewest.last_end(first) >= end;) {
        try_stage(first, end);
      }
    }
  }
  std::vector<LayerRange> result;
  auto place = forward ? 0 : count;
  while (place != (forward ? count : 0)) {
    auto const to = next[place];
    result.push_back({std::min(place, to), std::max(place, to) - std::min(place, to)});
    place = to;
  }
  return result;
}

}  // namespace detail

}  // namespace roundpipe
