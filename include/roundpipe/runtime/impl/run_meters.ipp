// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/bubble_meter.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/report.hpp>
#include <roundpipe/runtime/run_meters.hpp>

#include <algorithm>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE void RunMeters::add(RunState const& run,
                                     std::vector<TimelineEntry> const& entries,
                                     GraphProgram const& training) {
  if (&run.program() == &training) {
    busy_.add(entries);
    bubbles_.add(training.graph(), entries, [&](ActionId id) { return external(run, id); });
    ++counted_;
    forget_uncounted();
  }
  if (timeline_runs_ > 0) {
    latest_.push_back(entries);
    if (latest_.size() > timeline_runs_) {
      latest_.pop_front();
    }
  }
}

ROUNDPIPE_INLINE Timeline RunMeters::timeline() const {
  Timeline timeline{devices_, {}};
  for (auto const& entries : latest_) {
    timeline.entries.insert(timeline.entries.end(), entries.begin(), entries.end());
  }
  return timeline;
}

ROUNDPIPE_INLINE void RunMeters::forget_uncounted() noexcept {
  if (counted_ <= uncounted_) {
    busy_.forget();
    bubbles_.forget();
  }
}

ROUNDPIPE_INLINE BubbleMeter::External RunMeters::external(RunState const& run, ActionId id) {
  auto const& cross_run_waits = run.external(id);
  if (cross_run_waits.empty()) {
    return BubbleMeter::External::none;
  }
  auto const is_host = [](CrossRunWait const& earlier) { return earlier.run == nullptr; };
  return std::any_of(cross_run_waits.begin(), cross_run_waits.end(), is_host)
             ? BubbleMeter::External::host
             : BubbleMeter::External::device;
}

}  // namespace roundpipe
