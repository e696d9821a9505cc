// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief ZB-H1: 1F1B with split backwards that fill its bubbles.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief Stage r of P runs on device r as in 1F1B, but splits its backward in two: the input half,
/// which the previous stage waits for, runs at once; the weight half runs r micro-batches later, so
/// that the remaining weight halves fill the drain (ZB-H1, Qi et al. 2023, arXiv:2401.10241,
/// section 2.1).
/// No stage is fused, because each backward is split. Devices beyond the number of stages idle. In
/// flight until the weight half is done: min(M, P) micro-batches at every stage, as many as the
/// first stage of 1F1B holds. Bubble of P equal stages with forwards of F and halves of B and W,
/// where W <= F, W <= B and M >= P: (P - 1)(F + B - W) on each device; 1F1B has (P - 1)(F + B + W).
/// Rounds run one after another.
class ZbH1Schedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return false; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, there are more stages than devices, backward stages
  /// do not mirror forward ones, or a stage is fused.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// Devices keep their stages from call to call: 0. \throws Error (invalid_argument) when there
  /// are no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }
};

static_assert(Schedule<ZbH1Schedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/zb_h1_schedule.ipp>
#endif
