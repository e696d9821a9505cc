// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long a group's exchanges take.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace roundpipe {

/// An operation of all ranks: each sends \p mine to each other rank at once, \p tries times, with
/// the same sizes everywhere. \returns the seconds of the fastest of these exchanges, each of which
/// takes as long as on its slowest rank; the same number on all ranks.
/// \param theirs Room for one \p mine of each other rank.
/// \throws Error as the group's operations do.
template <ProcessGroup G>
[[nodiscard]] double exchange_seconds(
    G& group, GroupChannel channel, ConstHostBytes mine, HostBytes theirs, std::size_t tries) {
  using Clock = std::chrono::steady_clock;
  auto const own = group.rank();
  std::vector<ConstHostBytes> sent(group.size(), mine);
  std::vector<HostBytes> received(group.size());
  sent[own] = {};
  for (std::size_t r = 0; r < group.size(); ++r) {
    if (r != own) {
      received[r] = theirs.subspan((r < own ? r : r - 1) * mine.size(), mine.size());
    }
  }
  std::vector<double> own_s(tries);
  for (auto& seconds : own_s) {
    group.barrier(channel);
    auto const begin = Clock::now();
    group.exchange(channel, sent, received);
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::vector<double> all_s(group.size() * tries);
  group.gather(channel, std::as_bytes(std::span(own_s)), std::as_writable_bytes(std::span(all_s)));
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < tries; ++i) {
    double slowest = 0;
    for (std::size_t r = 0; r < group.size(); ++r) {
      slowest = std::max(slowest, all_s[r * tries + i]);
    }
    best = std::min(best, slowest);
  }
  return best;
}

}  // namespace roundpipe
