// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the host holds for the rounds that are under way: checkpoints, boundary gradients
/// and saved activations.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace roundpipe {

/// Entries of the host's rings.
class BoundaryStore {
 public:
  /// Takes memory with \p take, which owns it, for \p micro_batches_per_round of every planned
  /// boundary, and for what the host keeps of their saves.
  BoundaryStore(HostMemoryPlan const& plan,
                std::size_t micro_batches_per_round,
                TakeHostMemory const& take)
      : micro_batches_per_round_(micro_batches_per_round), working_set_(plan.working_set) {
    auto const add_boundaries = [&](BufferKind kind, std::map<std::size_t, Bytes> const& entries) {
      for (auto const& [layer, bytes] : entries) {
        add(kind, layer, std::vector(micro_batches_per_round, bytes), take);
      }
    };
    add_boundaries(BufferKind::checkpoint, plan.checkpoints);
    add_boundaries(BufferKind::boundary_gradient, plan.boundary_gradients);
    for (auto const& [layer, bytes] : plan.offloaded_saves) {
      add(BufferKind::offloaded_saves, layer, bytes, take);
    }
  }

  /// The layer that made what \p ring holds.
  [[nodiscard]] std::size_t layer_of(Ring const& ring) const noexcept {
    return ring.index / micro_batches_per_round_;
  }

  /// The memory of ring \p ring's entry number \p position.
  [[nodiscard]] HostBytes entry(Ring const& ring, std::size_t position) const;

 private:
  /// Adds the entries of \p layer, of \p bytes by micro-batch; none where that is 0.
  void add(BufferKind kind,
           std::size_t layer,
           std::vector<Bytes> const& bytes,
           TakeHostMemory const& take);

  std::size_t micro_batches_per_round_;
  WorkingSet working_set_;
  std::map<std::pair<BufferKind, std::size_t>, std::vector<HostBytes>> entries_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/boundary_store.ipp>
#endif
