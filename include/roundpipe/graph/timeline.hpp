// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What happened when: one measured or simulated entry for each action, and which entries
/// waited for which.

#include <roundpipe/config.hpp>
#include <roundpipe/graph/action_graph.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// One action in time.
struct TimelineEntry {
  std::size_t graph = 0;  ///< The number of its graph, a call or a step, in the order of the runs.
  ActionId id;            ///< Within its graph.
  ActionKind kind = ActionKind::forward;
  Lane lane;  ///< With the physical device.
  SlotId slot;
  StageId stage;
  RoundId round;
  MicroBatchId micro_batch;
  LayerId layer;
  BlockId block;
  Bytes bytes = 0;
  double start_s = 0;  ///< When its waits were over and its lane was free.
  double end_s = 0;
  std::size_t save_level = 0;   ///< As in \ref Action.
  bool hands_on_output = true;  ///< As in \ref Action.

  [[nodiscard]] double seconds() const noexcept { return end_s - start_s; }
};

/// \p action, number \p id of graph number \p graph, run on \p lane from \p start_s to \p end_s.
[[nodiscard]] TimelineEntry timeline_entry(
    Action const& action, std::size_t graph, ActionId id, Lane lane, double start_s, double end_s);

/// One entry waited for another; both members are indices of a timeline's entries.
struct TimelineFlow {
  std::size_t from = 0;
  /// The waiting entry. It starts no earlier than \c from; if both start at the same time, it comes
  /// later in the entries.
  std::size_t to = 0;

  friend bool operator==(TimelineFlow const&, TimelineFlow const&) = default;
};

/// Actions in time, from a common origin. A range of its entries.
struct Timeline {
  std::size_t devices = 0;
  std::vector<TimelineEntry> entries;
  std::vector<TimelineFlow> flows = {};  ///< The flows to draw; may be empty.

  [[nodiscard]] auto begin() const noexcept { return entries.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries.end(); }
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/timeline.ipp>
#endif
