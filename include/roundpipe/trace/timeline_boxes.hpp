// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A timeline as drawn: actions of one task as one box, and the idle time between boxes.

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace roundpipe::detail {

/// Consecutive actions on a lane that belong to one task.
struct TimelineBox {
  ActionKind kind = ActionKind::forward;
  std::size_t graph = 0;
  StageId stage;
  RoundId round;
  MicroBatchId micro_batch;
  LayerId first_layer;  ///< The lowest; none if the actions have none.
  LayerId last_layer;   ///< The highest.
  double start_s = 0;
  double end_s = 0;

  [[nodiscard]] bool is_of_task(TimelineEntry const& entry) const noexcept {
    return kind == entry.kind && graph == entry.graph && stage == entry.stage &&
           round == entry.round && micro_batch == entry.micro_batch;
  }
};

struct Stretch {
  double start_s = 0;
  double end_s = 0;

  friend bool operator==(Stretch const&, Stretch const&) = default;
};

/// From the first start to the last end of the actions with a duration on lanes for which \p
/// is_wanted(lane) holds; empty, at 0, if there are none.
template <class F>
[[nodiscard]] Stretch span_of(Timeline const& timeline, F&& is_wanted) {
  Stretch span;
  bool is_empty = true;
  for (auto const& entry : timeline) {
    if (is_wanted(entry.lane) && entry.start_s < entry.end_s) {
      span.start_s = is_empty ? entry.start_s : std::min(span.start_s, entry.start_s);
      span.end_s = is_empty ? entry.end_s : std::max(span.end_s, entry.end_s);
      is_empty = false;
    }
  }
  return span;
}

/// The boxes of \p timeline between \p from_s and \p to_s, lane by lane in order of time. A task is
/// one box unless it pauses for longer than \p unseen_s. Actions without duration are left out.
[[nodiscard]] inline std::map<Lane, std::vector<TimelineBox>> boxes_of(Timeline const& timeline,
                                                                       double from_s,
                                                                       double to_s,
                                                                       double unseen_s) {
  std::map<Lane, std::vector<TimelineEntry const*>> entries;
  for (auto const& entry : timeline) {
    if (std::max(entry.start_s, from_s) < std::min(entry.end_s, to_s)) {
      entries[entry.lane].push_back(&entry);
    }
  }
  std::map<Lane, std::vector<TimelineBox>> result;
  for (auto& [lane, row] : entries) {
    std::ranges::stable_sort(row, {}, [](TimelineEntry const* entry) { return entry->start_s; });
    auto& boxes = result[lane];
    for (auto const* entry : row) {
      auto const start_s = std::max(entry->start_s, from_s);
      auto const end_s = std::min(entry->end_s, to_s);
      if (!boxes.empty() && boxes.back().is_of_task(*entry) &&
          start_s <= boxes.back().end_s + unseen_s) {
        auto& box = boxes.back();
        box.first_layer = std::min(box.first_layer, entry->layer);
        box.last_layer = std::max(box.last_layer, entry->layer);
        box.end_s = std::max(box.end_s, end_s);
      } else {
        boxes.push_back({entry->kind,
                         entry->graph,
                         entry->stage,
                         entry->round,
                         entry->micro_batch,
                         entry->layer,
                         entry->layer,
                         start_s,
                         end_s});
      }
    }
  }
  return result;
}

/// The intervals from \p from_s to \p to_s, longer than \p unseen_s, that none of \p boxes covers.
/// \p boxes are in order of time.
[[nodiscard]] inline std::vector<Stretch> idle_between(std::vector<TimelineBox> const& boxes,
                                                       double from_s,
                                                       double to_s,
                                                       double unseen_s) {
  std::vector<Stretch> idle;
  double busy_until_s = from_s;
  auto const add_until = [&](double until_s) {
    if (until_s - busy_until_s > unseen_s) {
      idle.push_back({busy_until_s, until_s});
    }
  };
  for (auto const& box : boxes) {
    add_until(box.start_s);
    busy_until_s = std::max(busy_until_s, box.end_s);
  }
  add_until(to_s);
  return idle;
}

}  // namespace roundpipe::detail
