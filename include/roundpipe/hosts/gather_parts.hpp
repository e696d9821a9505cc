// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Completes an array of which each rank has a part.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// An operation of all ranks: \p parts, one for each rank, of the same sizes on each, become what
/// their ranks have there; the own one stays as it is. A rank receives each other part once.
/// \throws Error as the group's operations do.
template <ProcessGroup G>
void gather_parts(G& group, GroupChannel channel, std::span<HostBytes const> parts) {
  std::size_t const own = group.rank();
  std::vector<ConstHostBytes> mine(parts.size(), parts[own]);
  std::vector<HostBytes> theirs(parts.begin(), parts.end());
  mine[own] = {};  // nothing to itself: what is read and what is written must not overlap
  theirs[own] = {};
  group.exchange(channel, mine, theirs);
}

}  // namespace roundpipe
