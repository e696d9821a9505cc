// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/model/offloaded_saves.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <cstddef>
#include <map>

namespace roundpipe {

ROUNDPIPE_INLINE HostBytes BoundaryStore::entry(Ring const& ring, std::size_t position) const {
  auto const count = host_ring_entries(ring.kind);
  auto const micro_batch = ring.index % micro_batches_per_round_;
  return entries_.at({ring.kind, layer_of(ring)}).at(micro_batch * count + position % count);
}

ROUNDPIPE_INLINE void BoundaryStore::add(BufferKind kind,
                                         std::map<std::size_t, Bytes> const& bytes,
                                         TakeHostMemory const& take,
                                         OffloadedSaves const* some) {
  for (auto const& [layer, each] : bytes) {
    auto& entries = entries_[{kind, layer}];
    for (std::size_t m = 0; m < micro_batches_per_round_; ++m) {
      auto const holds = some == nullptr || some->has(layer, m);
      for (std::size_t i = 0; i < host_ring_entries(kind); ++i) {
        entries.push_back(holds ? take(each) : HostBytes{});
      }
    }
  }
}

}  // namespace roundpipe
