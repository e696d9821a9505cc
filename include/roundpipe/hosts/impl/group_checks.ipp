// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/group_checks.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace roundpipe::detail {

ROUNDPIPE_INLINE void check_gather(std::size_t ranks, ConstHostBytes mine, HostBytes all) {
  if (all.size() != ranks * mine.size()) {
    throw Error(Errc::invalid_argument,
                "a gather of " + std::to_string(mine.size()) + " bytes from each of " +
                    std::to_string(ranks) + " ranks has room for " + std::to_string(all.size()));
  }
}

ROUNDPIPE_INLINE void check_exchange(std::size_t rank,
                                     std::size_t ranks,
                                     std::span<ConstHostBytes const> mine,
                                     std::span<HostBytes const> theirs) {
  if (mine.size() != ranks || theirs.size() != ranks) {
    throw Error(Errc::invalid_argument,
                "an exchange among " + std::to_string(ranks) + " ranks has " +
                    std::to_string(mine.size()) + " parts to send and " +
                    std::to_string(theirs.size()) + " to receive");
  }
  if (mine[rank].size() != theirs[rank].size()) {
    throw Error(Errc::invalid_argument,
                "in an exchange rank " + std::to_string(rank) + " sends itself " +
                    std::to_string(mine[rank].size()) + " bytes and receives " +
                    std::to_string(theirs[rank].size()));
  }
}

ROUNDPIPE_INLINE void check_root(std::size_t ranks, std::size_t root) {
  if (root >= ranks) {
    throw Error(Errc::invalid_argument,
                "rank " + std::to_string(root) + " is to broadcast, and there are " +
                    std::to_string(ranks) + " ranks");
  }
}

ROUNDPIPE_INLINE void copy_bytes(ConstHostBytes from, HostBytes to) noexcept {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace roundpipe::detail
