// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One region of a device's arena for the parameters, gradients and scratch of stages that
/// follow each other.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// What a stage needs of the region.
struct RegionNeeds {
  Bytes parameters = 0;  ///< In the ring of all stages; none of a stage that has its own.
  Bytes gradients = 0;
  Bytes scratch = 0;
  bool reads_to_the_end = true;  ///< Whether the stage's last pass reads its parameters.
};

/// Where a stage finds its part of the region. An entry of a ring with two ends lies at the
/// bottom, or at the top, in turn.
struct RegionPlaces {
  Bytes scratch = 0;           ///< From the region's beginning.
  Bytes gradients_bottom = 0;  ///< From the region's beginning.
  Bytes gradients_top = 0;     ///< From the end of the gradients to the region's end.
};

/// The stages that take turns on a device, one or two, by number.
using DeviceTurn = std::vector<std::size_t>;
/// What a device runs of a graph, in order.
using DeviceTurns = std::vector<DeviceTurn>;

/// The region and what lies where.
struct StageRegion {
  Bytes bytes = 0;
  std::vector<RegionPlaces> stages;
};

/// \brief Lays out the region of devices that run any of \p stages.
///
/// From the bottom to the top: parameters of even turns, scratch, gradients of even turns,
/// gradients of odd turns, parameters of odd turns. A ring of one entry has the bottom alone. Every
/// stage has room for what may be live beside it and for no more, whatever the timing:
///
/// - Parameters of P entries: beside a turn, those of the next P turns that have any, itself
///   included, since an entry's next content waits until all have read it; of one turn more, if
///   the turn ends with a pass that does not read its own.
/// - Gradients of G entries: from their turn to the G-th turn behind it that makes gradients, since
///   that one's first backward waits until they are down.
/// - Scratch: in its turn.
///
/// \param parts What a device runs of each graph that there is, of any device: by graph and device.
///        Any part may follow any other. Empty: each stage may follow any.
/// \param parameters Entries, 1 or 2.
/// \param gradients Entries, 1 or 2.
/// \throws Error (invalid_argument) for other numbers of entries.
[[nodiscard]] StageRegion lay_out_region(std::span<RegionNeeds const> stages,
                                         std::span<DeviceTurns const> parts,
                                         std::size_t parameters,
                                         std::size_t gradients);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/stage_region.ipp>
#endif
