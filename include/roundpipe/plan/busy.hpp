// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much of a timeline each device spends computing.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// For each device the share of the timeline's span, in [0, 1], in which at least one of its
/// compute actions runs. The span reaches from the first start to the last end of any action, on
/// any lane; without one, all shares are 0. What is missing to 1 is the device's bubble.
/// \throws Error (invalid_argument) when an entry names a device that the timeline has not, or ends
///         before it starts.
[[nodiscard]] inline std::vector<double> busy_shares(Timeline const& timeline) {
  std::vector<double> shares(timeline.devices, 0.0);
  if (timeline.entries.empty()) {
    return shares;
  }
  using Interval = std::pair<double, double>;
  std::vector<std::vector<Interval>> computing(timeline.devices);
  double first_s = timeline.entries.front().start_s;
  double last_s = first_s;
  for (auto const& entry : timeline) {
    require(entry.start_s <= entry.end_s,
            Errc::invalid_argument,
            "an entry of a timeline ends before it starts");
    first_s = std::min(first_s, entry.start_s);
    last_s = std::max(last_s, entry.end_s);
    if (!entry.lane.device.valid()) {
      continue;
    }
    require(entry.lane.device.index() < timeline.devices,
            Errc::invalid_argument,
            "an entry of a timeline names a device that the timeline has not");
    if (entry.lane.kind == LaneKind::compute) {
      computing[entry.lane.device.index()].emplace_back(entry.start_s, entry.end_s);
    }
  }
  auto const span_s = last_s - first_s;
  if (!(span_s > 0)) {
    return shares;
  }
  for (std::size_t device = 0; device < timeline.devices; ++device) {
    auto& intervals = computing[device];
    std::sort(intervals.begin(), intervals.end());
    double busy_s = 0;
    double covered_s = first_s;  // everything before it is counted
    for (auto const& [start_s, end_s] : intervals) {
      busy_s += std::max(0.0, end_s - std::max(start_s, covered_s));
      covered_s = std::max(covered_s, end_s);
    }
    shares[device] = std::min(1.0, busy_s / span_s);
  }
  return shares;
}

}  // namespace roundpipe
