// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Traces a device's idle time back through what was waited for.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <cstddef>

namespace roundpipe::detail {

/// Charges the time from \p idle_from_s to the start of action \p id, of a compute lane, to what
/// was under way in it. \p first: nothing of its call ran on its device before.
///
/// The time is traced back from the action: to what ended last of all that it waited for, through
/// that, to what that waited for, and so on, until the device was busy. Copies are transfer stalls,
/// or memory stalls where what they waited for was their place; other devices' compute is
/// imbalance, or, before the device's first action of a call, fill, and drain where it belongs to
/// an earlier call; the host's work is an optimizer stall.
///
/// \tparam View Knows the actions by numbers:
/// - `entry(i)`: when action i ran, and where;
/// - `last_to_end(i)`: which of those that it waited for ended last, as an optional number;
/// - `waits_for_place(i, j)`: whether copy i waited for j to leave the memory that it writes;
/// - `rest(i, first)`: the cause of time in which i waited for nothing that the view knows.
template <class View>
void trace_bubble(
    View const& view, std::size_t id, double idle_from_s, bool first, Bubbles& bubbles) {
  auto const& idle = view.entry(id);
  auto until_s = idle.start_s;
  auto const charge = [&](BubbleCause cause, double from_s) {
    from_s = std::max(from_s, idle_from_s);
    if (from_s < until_s) {
      bubbles[cause] += until_s - from_s;
      until_s = from_s;
    }
  };
  auto const cause_of = [&](std::size_t blocker) {
    auto const& entry = view.entry(blocker);
    if (!entry.lane.device.valid()) {
      return BubbleCause::optimizer_stall;
    }
    if (entry.lane.kind == LaneKind::compute) {
      return entry.lane.device == idle.lane.device ? BubbleCause::dispatch
             : !first                              ? BubbleCause::imbalance
             : entry.graph == idle.graph           ? BubbleCause::fill
                                                   : BubbleCause::drain;
    }
    auto const before = view.last_to_end(blocker);
    return before && view.waits_for_place(blocker, *before) ? BubbleCause::memory_stall
                                                            : BubbleCause::transfer_stall;
  };
  while (until_s > idle_from_s) {
    auto const blocker = view.last_to_end(id);
    charge(view.rest(id, first), blocker ? view.entry(*blocker).end_s : idle_from_s);
    if (!blocker) {
      return;
    }
    charge(cause_of(*blocker), view.entry(*blocker).start_s);
    id = *blocker;
  }
}

}  // namespace roundpipe::detail
