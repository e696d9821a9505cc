// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns a complete run into entries of a timeline.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// Tells when the actions of runs began and ended, on devices and on the host, in seconds from one
/// time zero.
///
/// A device may measure the time between two events with few digits (CUDA counts milliseconds in a
/// float). So times count from a reference event that moves on with the training. The devices'
/// clocks are compared with the host's once, at time zero.
template <Backend B>
class RunTimeline {
 public:
  /// \param reference_s is how far apart an event and its reference may be, in seconds.
  explicit RunTimeline(double reference_s = 10) : reference_s_(reference_s) {}

  /// Adds the next device, whose first reference is \p origin, which this records on \p stream.
  void add_device(typename B::Event origin, typename B::Stream& stream) {
    stream.record(origin);
    references_.push_back({std::move(origin), 0});
  }

  /// Sets time zero: blocks until all devices' origins are complete, and takes the host's time.
  void begin() {
    for (auto& reference : references_) {
      reference.event.wait();
    }
    host_origin_ = RunClock::now();
  }

  /// An entry for each action of \p run, which is complete; they are there until the next call.
  /// To be called once a run: it may take one of the run's events for a reference.
  [[nodiscard]] std::vector<TimelineEntry> const& entries(GraphRun<B>& run) {
    entries_.clear();
    anchor(run);
    auto const& actions = run.program().graph().actions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      auto const id = ActionId(i);
      auto const lane = run.place().physical(actions[i].lane);
      auto const [start_s, end_s] = times(run, id, lane);
      entries_.push_back(timeline_entry(actions[i], run.number(), id, lane, start_s, end_s));
    }
    move_references(run);
    return entries_;
  }

 private:
  struct Reference {
    typename B::Event event;
    double time_s = 0;    ///< When it was recorded.
    double anchor_s = 0;  ///< When the run's first action on the device began.
  };

  /// Calls \p f(reference, event) for each device that has actions of \p run, with the event before
  /// the first of them.
  template <class F>
  void for_each_device(GraphRun<B>& run, F&& f) {
    for (std::size_t d = 0; d < run.devices(); ++d) {
      if (auto const first = run.program().first_on(DeviceId(d))) {
        f(references_[run.physical(DeviceId(d)).index()], run.start_event(*first));
      }
    }
  }

  void anchor(GraphRun<B>& run) {
    for_each_device(run, [](Reference& reference, auto& first) {
      reference.anchor_s = reference.time_s + first.seconds_since(reference.event);
    });
  }

  void move_references(GraphRun<B>& run) {
    for_each_device(run, [&](Reference& reference, auto& first) {
      if (reference.anchor_s - reference.time_s > reference_s_) {
        std::swap(reference.event, first);  // the run records the other one next time
        reference.time_s = reference.anchor_s;
      }
    });
  }

  [[nodiscard]] std::pair<double, double> times(GraphRun<B>& run, ActionId id, Lane lane) const {
    if (lane.device.valid()) {
      auto const& first = run.start_event(*run.program().first_on(run.relative(lane.device)));
      auto const zero = references_[lane.device.index()].anchor_s;
      return {zero + run.start_event(id).seconds_since(first),
              zero + run.end_event(id).seconds_since(first)};
    }
    auto const since_origin = [&](RunClock::time_point time) {
      return std::chrono::duration<double>(time - host_origin_).count();
    };
    auto const& host = run.host_times(id);
    return {since_origin(host.start), since_origin(host.end)};
  }

  double reference_s_;
  std::vector<Reference> references_;  // by device
  RunClock::time_point host_origin_;
  std::vector<TimelineEntry> entries_;
};

}  // namespace roundpipe
