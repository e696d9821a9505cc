// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns a complete run into entries of a timeline.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/plan/timeline.hpp>
#include <roundpipe/runtime/graph_run.hpp>

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// Tells when the actions of runs began and ended, on devices and on the host, in seconds from one
/// time zero.
template <Backend B>
class RunTimeline {
 public:
  /// Adds the next device, whose events count from \p origin, which this records on \p stream.
  void add_device(typename B::Event origin, typename B::Stream& stream) {
    stream.record(origin);
    origins_.push_back(std::move(origin));
  }

  /// Sets time zero: blocks until all devices' origins are complete, and takes the host's time.
  void begin() {
    for (auto& origin : origins_) {
      origin.wait();
    }
    host_origin_ = RunClock::now();
  }

  /// An entry for each action of \p run, which is complete; they are there until the next call.
  [[nodiscard]] std::vector<TimelineEntry> const& entries(GraphRun<B>& run) {
    entries_.clear();
    auto const& actions = run.program().graph().actions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      auto const id = ActionId(i);
      auto const lane = run.place().physical(actions[i].lane);
      auto const [start_s, end_s] = times(run, id, lane);
      entries_.push_back(timeline_entry(actions[i], run.number(), id, lane, start_s, end_s));
    }
    return entries_;
  }

 private:
  [[nodiscard]] std::pair<double, double> times(GraphRun<B>& run, ActionId id, Lane lane) const {
    if (lane.device.valid()) {
      auto const& origin = origins_[lane.device.index()];
      return {run.start_event(id).seconds_since(origin), run.end_event(id).seconds_since(origin)};
    }
    auto const since_origin = [&](RunClock::time_point time) {
      return std::chrono::duration<double>(time - host_origin_).count();
    };
    auto const& host = run.host_times(id);
    return {since_origin(host.start), since_origin(host.end)};
  }

  std::vector<typename B::Event> origins_;  // by device
  RunClock::time_point host_origin_;
  std::vector<TimelineEntry> entries_;
};

}  // namespace roundpipe
