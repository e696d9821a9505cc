// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where boundaries that devices keep lie there, and which ones they keep.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/boundary_lives.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
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
  /// The same where the \p lives of the graph's boundaries are known.
  ResidentRings(std::span<detail::BoundaryLife const> lives,
                ResidentBoundaries const& resident,
                ResidentBoundaries const& sent);

  /// Where what \p made names of \p round goes.
  [[nodiscard]] BoundaryWay const& way(MadeBoundary const& made, RoundId round) const;

  /// How many rings of \p kind there are, and the bytes of an entry of one.
  [[nodiscard]] RingLayout const& size(BufferKind kind) const { return sizes_.of(kind); }

 private:
  struct Pool {
    std::set<std::size_t> free;
    std::set<std::pair<std::size_t, std::size_t>> used;  // last reader, ring
    std::size_t count = 0;
  };

  /// Gives \p life a place on \p device for those of \p readers that run there.
  Ring take(detail::BoundaryLife const& life,
            std::span<detail::BoundaryReader const> readers,
            DeviceId device);

  std::map<std::pair<MadeBoundary, RoundId>, BoundaryWay> ways_;  // but through the host
  std::map<std::pair<DeviceId, BufferKind>, Pool> pools_;
  ResidentLayout sizes_;
};

namespace detail {

/// Which plans \ref keep_resident looks at.
enum class ResidencyTrial {
  all,     ///< That where boundaries stay with their makers, and that where they go to peers, too.
  most,    ///< The one of these that keeps most alone: a search has half as much to forecast.
  forced,  ///< The same without a forecast: that which takes least of the host.
};

/// Lets devices keep boundaries: of those that no other device reads, and where devices reach each
/// other of all, as many as \p found leaves room for, first those that are read soonest. Where \p
/// options leave the choice to \p forecast, returns what that finds fastest, which may be \p found
/// as it is, if the host has room for that. \p slots run the stages of a training call, and \p
/// evaluating those of an evaluation.
[[nodiscard]] FoundPlan keep_resident(FoundPlan found,
                                      std::span<Slot const> slots,
                                      std::span<Slot const> evaluating,
                                      PlanOptions const& options,
                                      PlanForecast const& forecast,
                                      ResidencyTrial trial = ResidencyTrial::all);

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/resident_rings.ipp>
#endif
