// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where boundaries that stay on a device lie there, and which ones stay.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// From where a boundary of a round is made to where it is read last, in the order of passes.
struct BoundaryLife {
  MadeBoundary made;
  RoundId round;
  DeviceId device;         ///< That makes it.
  std::size_t from = 0;    ///< The pass that writes it.
  std::size_t until = 0;   ///< The last pass that reads it.
  bool is_read = false;    ///< At all.
  bool one_device = true;  ///< Whether all passes that read it run where it was made.
  Bytes bytes = 0;         ///< At capacity.
};

/// The lives of all boundaries of a graph, in the order in which they begin. \p slots run \p stages
/// with \p micro_batches each, in issue order.
[[nodiscard]] std::vector<BoundaryLife> boundary_lives(std::span<StageLayout const> stages,
                                                       std::span<Slot const> slots,
                                                       std::size_t micro_batches);

}  // namespace detail

/// \brief The rings of resident boundaries of a graph, of one entry each.
///
/// A ring goes from hand to hand: a boundary takes the first one of its kind that is free on its
/// device when it is made. Rings of a kind are equally large, and all devices have as many. A
/// boundary is written and read by compute alone, in the order of one lane; that order implies all
/// waits between its users.
class ResidentRings {
 public:
  ResidentRings() = default;
  /// \p slots run \p stages with \p micro_batches each, in issue order.
  /// \throws Error (unsupported) when one of \p resident is read on another device than the one
  ///         that makes it.
  ResidentRings(std::span<StageLayout const> stages,
                std::span<Slot const> slots,
                std::size_t micro_batches,
                ResidentBoundaries const& resident);

  /// The index of the ring that holds what \p made names of \p round; none where it does not stay.
  [[nodiscard]] std::optional<std::size_t> ring(MadeBoundary const& made, RoundId round) const;

  /// How many rings of \p kind there are, and the bytes of an entry of one.
  [[nodiscard]] RingLayout const& size(BufferKind kind) const { return sizes_.of(kind); }

 private:
  std::map<std::pair<MadeBoundary, RoundId>, std::size_t> rings_;
  ResidentLayout sizes_;
};

namespace detail {

/// Lets boundaries stay on the devices: of those that no other device reads as many as \p found
/// leaves room for, first those that are read soonest. Returns \p found as it is where \p options
/// leave the choice to \p forecast, and that finds it faster. \p slots run the stages of a training
/// call, and \p evaluating those of an evaluation.
[[nodiscard]] FoundPlan keep_resident(FoundPlan found,
                                      std::span<Slot const> slots,
                                      std::span<Slot const> evaluating,
                                      PlanOptions const& options,
                                      PlanForecast const& forecast);

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/resident_rings.ipp>
#endif
