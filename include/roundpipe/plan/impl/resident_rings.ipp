// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/boundary_lives.hpp>
#include <roundpipe/plan/resident_rings.hpp>
#include <roundpipe/plan/ring_pools.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>
#include <optional>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE std::optional<Ring> BoundaryWay::read_by(StageId stage) const {
  auto const found = reads.find(stage);
  return found == reads.end() ? std::nullopt : std::optional(found->second);
}

ROUNDPIPE_INLINE ResidentRings::ResidentRings(std::span<StageLayout const> stages,
                                              std::span<Slot const> slots,
                                              std::size_t micro_batches,
                                              ResidentBoundaries const& resident,
                                              ResidentBoundaries const& sent) {
  if (resident.empty() && sent.empty()) {
    return;
  }
  detail::RingPools pools;
  for (auto const& life : detail::boundary_lives(stages, slots, micro_batches)) {
    auto const of_all = resident.contains(life.made);
    if (!of_all && !sent.contains(life.made)) {
      continue;
    }
    auto const kept_for = life.kept_for(of_all);
    if (kept_for.empty()) {
      continue;
    }
    auto& way = ways_[{life.made, life.round}];
    way.through_host = !of_all && life.kept_for(true).size() > 1;
    for (auto const& stay : life.stays(kept_for)) {
      auto const ring = pools.take(life.made.kind, stay.device, life.from, stay.until, life.bytes);
      if (stay.device == life.device) {
        way.own = way.reads[life.stage] = ring;
      } else {
        way.sent.push_back(ring);
      }
      for (auto const& reader : kept_for) {
        if (reader.device == stay.device) {
          way.reads[reader.stage] = ring;
        }
      }
    }
  }
}

ROUNDPIPE_INLINE BoundaryWay const& ResidentRings::way(MadeBoundary const& made,
                                                       RoundId round) const {
  static BoundaryWay const through_host;
  auto const found = ways_.find({made, round});
  return found == ways_.end() ? through_host : found->second;
}

}  // namespace roundpipe
