// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a pipeline has done so far, and how busy its devices were.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/model/cost_model.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundpipe {

/// Figures of a pipeline's life; shares are of the time in which training calls ran.
struct Report {
  std::size_t calls = 0;            ///< Training calls, but for those that were dropped.
  std::uint64_t steps = 0;          ///< Finished steps.
  std::uint64_t skipped_steps = 0;  ///< Those among them whose gradients overflowed.
  double training_s = 0;  ///< From first to last action of the training calls, overlaps once.
  std::vector<double> device_busy;  ///< By device: the share in which it computed.
  Bubbles bubbles;                  ///< Idle time between the training calls' work, by cause.
  Bytes device_bytes_peak = 0;      ///< Of each device; everything is reserved at the start.
  Bytes host_bytes_peak = 0;        ///< Of the host's arenas.
  NetworkCost network;              ///< As ranks with measured costs have found it before step 1.
};

/// Sums up training calls, in the order in which they were run, for a \ref Report.
class BusyMeter {
 public:
  explicit BusyMeter(std::size_t devices) : busy_s_(devices, 0.0) {}

  void add(std::span<TimelineEntry const> call);

  /// Begins anew with what comes after all that was added.
  void forget() noexcept;

  void fill(Report& report) const;

 private:
  std::vector<double> busy_s_;
  double training_s_ = 0;
  double until_s_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/report.ipp>
#endif
