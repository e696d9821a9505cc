// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the host holds for the rounds that are under way: checkpoints, boundary gradients
/// and saved activations.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <cstddef>
#include <map>
#include <vector>

namespace roundpipe {

/// The memory of the host's rings.
class BoundaryStore {
 public:
  /// Takes memory with \p take, which owns it, for every entry of \p rings.
  BoundaryStore(HostRings rings, TakeHostMemory const& take);

  /// The layer that made what \p ring holds in \p round.
  [[nodiscard]] std::size_t layer_of(Ring const& ring, RoundId round) const {
    return rings_.layer_of(ring, round);
  }
  /// The memory of ring \p ring's entry number \p position.
  [[nodiscard]] HostBytes entry(Ring const& ring, std::size_t position) const {
    auto const count = rings_.entries(ring.kind);
    return entries_.at(ring.kind).at(ring.index * count + position % count);
  }

 private:
  HostRings rings_;
  std::map<BufferKind, std::vector<HostBytes>> entries_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/boundary_store.ipp>
#endif
