// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief From where boundaries of a call are made to where they are read.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe::detail {

/// A stage that reads a boundary of a round.
struct BoundaryReader {
  StageId stage;
  DeviceId device;
  std::size_t until = 0;  ///< Its last pass that reads it, in the order of passes.
};

/// How long a device keeps a boundary.
struct BoundaryStay {
  DeviceId device;
  std::size_t until = 0;  ///< Its last pass that needs it, in the order of passes.
};

/// From where a boundary of a round is made to where it is read last, in the order of passes.
struct BoundaryLife {
  MadeBoundary made;
  RoundId round;
  StageId stage;                        ///< That makes it,
  DeviceId device;                      ///< and where.
  std::size_t from = 0;                 ///< The pass that writes it.
  std::vector<BoundaryReader> readers;  ///< In order.
  Bytes bytes = 0;                      ///< At capacity.

  /// Whether all stages that read it run where it was made.
  [[nodiscard]] bool one_device() const {
    return std::ranges::all_of(readers, [&](auto const& each) { return each.device == device; });
  }
  /// The first stage that reads it besides the one that makes it; the last reader if there is none.
  [[nodiscard]] BoundaryReader const& next() const;
  /// The stages that devices keep it for: all that read it (\p of_all), or the next one alone, if
  /// that is on another device. The stage that makes it has it anyway, unless no other reads it.
  [[nodiscard]] std::vector<BoundaryReader> kept_for(bool of_all) const;
  /// Where it is kept for \p kept_for, and how long.
  [[nodiscard]] std::vector<BoundaryStay> stays(std::span<BoundaryReader const> kept_for) const;
};

/// The lives of all boundaries of a graph, in the order in which they begin. \p slots run \p stages
/// with \p micro_batches each, in issue order.
[[nodiscard]] std::vector<BoundaryLife> boundary_lives(std::span<StageLayout const> stages,
                                                       std::span<Slot const> slots,
                                                       std::size_t micro_batches);

/// The bytes of a micro-batch of each round that a stage hands on to the next one on another
/// device.
[[nodiscard]] Bytes handed_on(std::span<StageLayout const> stages, std::span<Slot const> slots);

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/boundary_lives.ipp>
#endif
