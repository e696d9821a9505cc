// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/model/dealt_rounds.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE DealtRounds::DealtRounds(std::vector<std::size_t> of_rank)
    : of_rank_(std::move(of_rank)) {}

ROUNDPIPE_INLINE std::size_t DealtRounds::most() const noexcept {
  return *std::max_element(of_rank_.begin(), of_rank_.end());
}

ROUNDPIPE_INLINE std::size_t DealtRounds::ranks_with(std::size_t round) const noexcept {
  return static_cast<std::size_t>(std::count_if(
      of_rank_.begin(), of_rank_.end(), [&](std::size_t rounds) { return round < rounds; }));
}

ROUNDPIPE_INLINE std::size_t DealtRounds::number(std::size_t rank,
                                                 std::size_t round) const noexcept {
  std::size_t before = 0;
  for (std::size_t r = 0; r < ranks(); ++r) {
    before += std::min(of_rank_[r], round) + (r < rank && has(r, round) ? 1 : 0);
  }
  return before;
}

ROUNDPIPE_INLINE DealtRounds deal_rounds(std::size_t rounds, std::span<double const> speeds) {
  std::vector<std::size_t> of_rank(speeds.size(), 1);
  auto const end = [&](std::size_t rank) {  // with one round more
    return static_cast<double>(of_rank[rank] + 1) / speeds[rank];
  };
  for (auto dealt = speeds.size(); dealt < rounds; ++dealt) {
    std::size_t next = 0;
    for (std::size_t rank = 1; rank < speeds.size(); ++rank) {
      next = end(rank) < end(next) ? rank : next;
    }
    ++of_rank[next];
  }
  return DealtRounds(std::move(of_rank));
}

}  // namespace roundpipe
