// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief GPipe: all forwards of a round, then all backwards.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief Stage i runs on device i: first the forwards of all micro-batches, then their backwards
/// (GPipe, Huang et al. 2019, section 2.3).
/// No stage is fused, because no backward starts before the last forward has ended. Backwards run
/// in the order of the forwards, so that each stage's round is a slot. Devices beyond the number of
/// stages idle. In flight: all M micro-batches. Bubble of P equal stages on P devices: (P - 1) / (M
/// + P - 1). Rounds run one after another.
class GPipeSchedule {
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

static_assert(Schedule<GPipeSchedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/gpipe_schedule.ipp>
#endif
