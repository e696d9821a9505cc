// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which boundaries devices keep, and which passes use them.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <compare>
#include <cstddef>
#include <set>
#include <vector>

namespace roundpipe {

/// What a layer makes of a micro-batch, in each round: its output (`checkpoint`), or a backward of
/// the layer behind it: the gradient of that (`boundary_gradient`).
struct MadeBoundary {
  BufferKind kind = BufferKind::checkpoint;
  std::size_t layer = 0;
  std::size_t micro_batch = 0;  ///< Of a round.

  friend constexpr auto operator<=>(MadeBoundary const&, MadeBoundary const&) noexcept = default;
  friend constexpr bool operator==(MadeBoundary const&, MadeBoundary const&) noexcept = default;
};

/// The boundaries that devices keep: a pass that reads one finds it on its own device, where it was
/// made, or where it was sent. The host holds nothing of them.
using ResidentBoundaries = std::set<MadeBoundary>;

/// A boundary that a pass reads or writes in the entries of activations.
struct BoundaryAccess {
  BufferKind kind = BufferKind::checkpoint;
  std::size_t layer = 0;  ///< Whose output it is.
  bool writes = false;
  Place place;  ///< Where the stage has it, unless the device keeps it.
};

/// The boundaries that \p pass of \p stage reads or writes in the entries of activations: those
/// that pass between stages, and checkpoints.
[[nodiscard]] std::vector<BoundaryAccess> boundary_accesses(StageLayout const& stage,
                                                            Pass const& pass);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/resident_boundaries.ipp>
#endif
