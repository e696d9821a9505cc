// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/report.hpp>

#include <algorithm>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE void BusyMeter::add(std::span<TimelineEntry const> call) {
  double begin = until_s_;
  double end = 0;
  bool first = true;
  for (auto const& entry : call) {
    if (!entry.lane.device.valid()) {
      continue;
    }
    begin = first ? entry.start_s : std::min(begin, entry.start_s);
    end = std::max(end, entry.end_s);
    first = false;
    if (entry.lane.kind == LaneKind::compute) {
      busy_s_[entry.lane.device.index()] += entry.seconds();
    }
  }
  if (!first && end > until_s_) {
    training_s_ += end - std::max(begin, until_s_);
    until_s_ = end;
  }
}

ROUNDPIPE_INLINE void BusyMeter::forget() noexcept {
  std::fill(busy_s_.begin(), busy_s_.end(), 0.0);
  training_s_ = 0;
}

ROUNDPIPE_INLINE void BusyMeter::fill(Report& report) const {
  report.training_s = training_s_;
  for (auto const busy : busy_s_) {
    report.device_busy.push_back(training_s_ > 0 ? busy / training_s_ : 0);
  }
}

}  // namespace roundpipe
