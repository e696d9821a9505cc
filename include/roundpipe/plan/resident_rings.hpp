// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where boundaries that devices keep lie there.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

/// Where a boundary of a round goes.
struct BoundaryWay {
  std::optional<Ring> own;        ///< Where it stays, on the device that makes it.
  std::vector<Ring> sent;         ///< Where it is sent to, one a device.
  std::map<StageId, Ring> reads;  ///< Where stages find it that do not get it from the host.
  bool through_host = true;       ///< Whether the host holds it for others.

  /// Where \p stage finds it on its device; none where it gets it from the host, or makes it.
  [[nodiscard]] std::optional<Ring> read_by(StageId stage) const;
};

/// \brief The rings of a graph's boundaries that devices keep, of one entry each.
///
/// Each device that reads a boundary from its own memory has a place for it. On the device that
/// makes it, the pass writes there; to others it is sent. A ring goes from hand to hand: a boundary
/// takes the first one of its kind that is free on a device when it is made. Rings of a kind are
/// equally large, and all devices have as many. What is made and read on one device is used by
/// compute alone, whose order implies all waits between users. What is sent waits for the former
/// users, as the writers of all rings do, and its readers wait for it.
class ResidentRings {
 public:
  ResidentRings() = default;
  /// \p slots run \p stages with \p micro_batches each, in issue order. Devices keep \p resident
  /// for all stages that read them, and \p sent for the next one, while the host does for others.
  ResidentRings(std::span<StageLayout const> stages,
                std::span<Slot const> slots,
                std::size_t micro_batches,
                ResidentBoundaries const& resident,
                ResidentBoundaries const& sent = {});

  /// Where what \p made names of \p round goes.
  [[nodiscard]] BoundaryWay const& way(MadeBoundary const& made, RoundId round) const;

 private:
  std::map<std::pair<MadeBoundary, RoundId>, BoundaryWay> ways_;  // but through the host
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/resident_rings.ipp>
#endif
