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
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE HostBytes BoundaryStore::entry(Ring const& ring, std::size_t position) const {
  auto const count = host_ring_entries(ring.kind, working_set_, layer_of(ring));
  auto const micro_batch = ring.index % micro_batches_per_round_;
  return entries_.at({ring.kind, layer_of(ring)}).at(micro_batch * count + position % count);
}

ROUNDPIPE_INLINE void BoundaryStore::add(BufferKind kind,
                                         std::size_t layer,
                                         std::vector<Bytes> const& bytes,
                                         TakeHostMemory const& take) {
  auto& entries = entries_[{kind, layer}];
  for (auto const each : bytes) {
    for (std::size_t i = 0; i < host_ring_entries(kind, working_set_, layer); ++i) {
      entries.push_back(each > 0 ? take(each) : HostBytes{});
    }
  }
}

}  // namespace roundpipe
