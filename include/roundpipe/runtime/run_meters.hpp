// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What finished runs say of a pipeline: shares of time, and a timeline.

#include <roundpipe/bubble/bubble_meter.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/report.hpp>

#include <cstddef>
#include <deque>
#include <vector>

namespace roundpipe {

/// Adds up runs, in the order in which they were posted.
class RunMeters {
 public:
  /// \p timeline_runs: how many of the latest runs the timeline keeps.
  RunMeters(std::size_t devices, std::size_t timeline_runs)
      : devices_(devices), timeline_runs_(timeline_runs), busy_(devices), bubbles_(devices) {}

  /// Adds a complete run. Only runs of \p training count for shares of time.
  void add(RunState const& run,
           std::vector<TimelineEntry> const& entries,
           GraphProgram const& training);

  /// Leaves the first \p runs training runs out of the shares of time.
  void leave_out(std::size_t runs) noexcept {
    uncounted_ = runs;
    forget_uncounted();
  }

  /// Says that \p runs training runs were before the next; leaves them out.
  void restart_at(std::size_t runs) noexcept {
    counted_ = runs;
    leave_out(runs);
  }

  /// Says that \p runs training runs count, whatever was added: the others were dropped.
  void set_counted(std::size_t runs) noexcept { counted_ = runs; }

  /// Sets the figures of time of \p report.
  void fill(Report& report) const {
    busy_.fill(report);
    report.bubbles = bubbles_.bubbles();
  }

  [[nodiscard]] Timeline timeline() const;

 private:
  void forget_uncounted() noexcept;

  /// What \p id waits for besides its own run.
  [[nodiscard]] static BubbleMeter::External external(RunState const& run, ActionId id);

  std::size_t devices_;
  std::size_t timeline_runs_;
  BusyMeter busy_;
  BubbleMeter bubbles_;
  std::deque<std::vector<TimelineEntry>> latest_;
  std::size_t counted_ = 0;    // training runs that were added
  std::size_t uncounted_ = 0;  // the first ones, which shares of time are not about
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/run_meters.ipp>
#endif
