// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a pipeline has done so far, and how busy its devices were.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundpipe {

/// Figures of a pipeline's life; shares are of the time in which training calls ran.
struct Report {
  std::size_t calls = 0;            ///< Training calls.
  std::uint64_t steps = 0;          ///< Finished steps.
  std::uint64_t skipped_steps = 0;  ///< Those among them whose gradients overflowed.
  double training_s = 0;  ///< From first to last action of the training calls, overlaps once.
  std::vector<double> device_busy;  ///< By device: the share in which it computed.
  Bubbles bubbles;                  ///< Idle time between the training calls' work, by cause.
  Bytes device_bytes_peak = 0;      ///< Of each device; everything is reserved at the start.
  Bytes host_bytes_peak = 0;        ///< Of the host's arenas.
};

/// Sums up training calls, in the order in which they were run, for a \ref Report.
class BusyMeter {
 public:
  explicit BusyMeter(std::size_t devices) : busy_s_(devices, 0.0) {}

  void add(std::span<TimelineEntry const> call) {
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

  /// Begins anew with what comes after all that was added.
  void forget() noexcept {
    std::ranges::fill(busy_s_, 0.0);
    training_s_ = 0;
  }

  void fill(Report& report) const {
    report.training_s = training_s_;
    for (auto const busy : busy_s_) {
      report.device_busy.push_back(training_s_ > 0 ? busy / training_s_ : 0);
    }
  }

 private:
  std::vector<double> busy_s_;
  double training_s_ = 0;
  double until_s_ = 0;
};

}  // namespace roundpipe
