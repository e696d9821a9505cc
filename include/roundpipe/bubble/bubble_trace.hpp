// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Traces the idle time of a device back through the chain of waits.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace roundpipe::detail {

[[nodiscard]] constexpr std::size_t number_of(std::size_t action) noexcept {
  return action;
}
[[nodiscard]] constexpr std::size_t number_of(ActionId action) noexcept {
  return action.index();
}

/// The last to end of the actions that action \p i waited for; see \ref trace_bubble.
template <class View>
[[nodiscard]] std::optional<std::size_t> last_to_end(View const& view, std::size_t i) {
  std::optional<std::size_t> latest = view.before(i);
  for (auto const wait : view.waits(i)) {
    if (!latest || view.entry(number_of(wait)).end_s > view.entry(*latest).end_s) {
      latest = number_of(wait);
    }
  }
  return latest;
}

/// Charges the time from \p idle_from_s to the start of action \p id, of a compute lane, to the
/// work that was in progress during that time. \p first says that \p id is the first action of its
/// call on its device.
///
/// The trace goes back from the action to the last to end of the actions that it waited for, from
/// there to the last to end of that action's waits, and so on, until the device was busy. Copies
/// are transfer stalls, or memory stalls when they waited for their place. Compute of other devices
/// is imbalance; before the device's first action of a call it is fill, or drain if it belongs to
/// an earlier call. Work of the host is an optimizer stall.
/// \tparam View Knows the actions by numbers:
/// - `entry(i)`: when and where action i ran;
/// - `before(i)`: the action before i on its lane, as an optional number;
/// - `waits(i)`: the other actions that i waited for, as numbers or ids;
/// - `waits_for_place(i, j)`: whether copy i waited for j to leave the memory that i writes;
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
    auto const before = last_to_end(view, blocker);
    return before && view.waits_for_place(blocker, *before) ? BubbleCause::memory_stall
                                                            : BubbleCause::transfer_stall;
  };
  while (until_s > idle_from_s) {
    auto const blocker = last_to_end(view, id);
    charge(view.rest(id, first), blocker ? view.entry(*blocker).end_s : idle_from_s);
    if (!blocker) {
      return;
    }
    charge(cause_of(*blocker), view.entry(*blocker).start_s);
    id = *blocker;
  }
}

}  // namespace roundpipe::detail
