// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <cstddef>
#include <map>

namespace roundpipe {

ROUNDPIPE_INLINE HostBytes BoundaryStore::entry(Ring const& ring, std::size_t position) const {
  auto const boundary = ring.index / micro_batches_per_round_;
  auto const micro_batch = ring.index % micro_batches_per_round_;
  return entries_.at({ring.kind, boundary})
      .at(micro_batch * host_ring_entries + position % host_ring_entries);
}

ROUNDPIPE_INLINE void BoundaryStore::add(BufferKind kind,
                                         std::map<std::size_t, Bytes> const& boundaries,
                                         TakeHostMemory const& take) {
  for (auto const& [boundary, bytes] : boundaries) {
    auto& entries = entries_[{kind, boundary}];
    for (std::size_t i = 0; i < micro_batches_per_round_ * host_ring_entries; ++i) {
      entries.push_back(take(bytes));
    }
  }
}

}  // namespace roundpipe
