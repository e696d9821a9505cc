// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE BoundaryStore::BoundaryStore(HostRings rings, TakeHostMemory const& take)
    : rings_(std::move(rings)) {
  for (auto const kind : HostRings::kinds) {
    for (auto const bytes : rings_.entry_bytes(kind)) {
      for (std::size_t i = 0; i < rings_.entries(kind); ++i) {
        entries_[kind].push_back(take(bytes));
      }
    }
  }
}

}  // namespace roundpipe
