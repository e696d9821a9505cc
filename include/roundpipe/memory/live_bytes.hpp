// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much of a device's memory is live at once: what no arena could do without.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace roundpipe {

/// The bytes of a device that are live, by class: the rings by \ref BufferKind, then scratch, and
/// resident boundaries. Rings of forward stages count with the others of their kind.
using LiveClasses = std::array<Bytes, device_ring_count + 2>;

/// The most bytes of a device that are live at once.
struct LiveBytes {
  LiveClasses most{};        ///< Of each class, at the class's own fullest moment.
  LiveClasses at_fullest{};  ///< Of each class, at the fullest moment of all together.

  /// What is live at the fullest moment.
  [[nodiscard]] Bytes total() const noexcept {
    return std::accumulate(at_fullest.begin(), at_fullest.end(), Bytes{0});
  }
};

/// For each device, the most bytes that are live at once while the calls of \p timeline run.
///
/// A tensor is live from the begin of the first action that needs it to the end of the last:
///
// clang-format off
/// | what                                        | from                     | until                                 |
/// |---------------------------------------------|--------------------------|---------------------------------------|
/// | a piece of a use's parameters               | its copy                 | the last pass that reads it           |
/// | a use's sums of gradients                   | its first backward       | its last backward, which rounds them  |
/// | a piece of the rounded gradients            | its last backward        | its copy                              |
/// | boundaries and their gradients, side inputs | what makes them          | the last pass or copy that reads them |
/// | saves that the host keeps                   | what makes them          | the backward, or the copy to the host |
/// | other saves                                 | the pass that makes them | the backward                          |
/// | workspace                                   | a pass                   | the same pass                         |
// clang-format on
///
/// So the total is a lower bound of all arenas with which the actions run at these times, wherever
/// things lie. It counts what the stage and the micro-batch need, an entry of a ring what the
/// largest needs.
///
/// \param timeline Of calls, all with the graph \p call, and steps; simulated or measured.
/// \param stages The stages of \p call.
/// \throws Error (invalid_argument) when \p timeline has other calls.
[[nodiscard]] std::vector<LiveBytes> live_bytes(Timeline const& timeline,
                                                ActionGraph const& call,
                                                ModelDescription const& model,
                                                ParameterBlocks const& blocks,
                                                std::span<StageLayout const> stages);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/live_bytes.ipp>
#endif
