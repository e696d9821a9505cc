// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/bubble_meter.hpp>
#include <roundpipe/bubble/bubble_trace.hpp>
#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE void BubbleMeter::add(ActionGraph const& graph,
                                       std::span<TimelineEntry const> entries,
                                       std::function<External(ActionId)> const& external) {
  std::vector<std::optional<std::size_t>> before(entries.size());  // on the same lane
  std::map<Lane, std::size_t> latest;
  View const view{graph, entries, before, external};
  std::vector<bool> has_begun(busy_until_s_.size(), false);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto const& entry = entries[i];
    if (auto const found = latest.find(entry.lane); found != latest.end()) {
      before[i] = found->second;
    }
    latest[entry.lane] = i;
    if (entry.lane.kind != LaneKind::compute) {
      continue;
    }
    auto const device = entry.lane.device.index();
    auto& busy_until_s = busy_until_s_[device];
    if (busy_until_s) {
      detail::trace_bubble(view, i, *busy_until_s, !has_begun[device], bubbles_);
    }
    has_begun[device] = true;
    busy_until_s = std::max(busy_until_s.value_or(entry.end_s), entry.end_s);
  }
}

ROUNDPIPE_INLINE bool BubbleMeter::View::waits_for_place(std::size_t copy, std::size_t user) const {
  auto const& used = graph.actions[user];
  auto const& writes = graph.actions[copy].writes;
  return std::any_of(writes.begin(), writes.end(), [&](Buffer const& written) {
    auto const found = graph.rings.find(written.ring);
    auto const count = found == graph.rings.end() ? 1 : found->second.count;
    auto const is_place = [&](Buffer const& buffer) {
      return buffer.ring == written.ring && buffer.sequence + count <= written.sequence;
    };
    return written.ring.device.valid() &&
           (std::any_of(used.reads.begin(), used.reads.end(), is_place) ||
            std::any_of(used.writes.begin(), used.writes.end(), is_place));
  });
}

ROUNDPIPE_INLINE BubbleCause BubbleMeter::View::rest(std::size_t i, bool first) const {
  switch (external(ActionId(i))) {
    case External::host:
      return BubbleCause::optimizer_stall;
    case External::device:
      return BubbleCause::memory_stall;
    case External::none:
      break;
  }
  return first ? BubbleCause::drain : BubbleCause::dispatch;
}

}  // namespace roundpipe
