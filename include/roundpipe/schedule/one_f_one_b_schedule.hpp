// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief 1F1B: forwards and backwards alternate, so that few micro-batches are in flight.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief Stage r of P runs on device r: P - 1 - r forwards, then forwards and backwards in turn,
/// then the remaining backwards (PipeDream-Flush, Narayanan et al. 2021, arXiv:2006.09503; DAPPLE,
/// Fan et al. 2021).
/// The backward of the last stage follows its forward at once, so that the stage can be fused and
/// recomputes nothing; unfused shapes run, too. Devices beyond the number of stages idle. In flight
/// at stage r: min(M, P - r) micro-batches. Bubble of P equal stages on P devices: (P - 1) / (M + P
/// - 1), as in GPipe. Rounds run one after another.
class OneFOneBSchedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return true; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, there are more stages than devices, or backward
  /// stages do not mirror forward ones.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// Devices keep their stages from call to call: 0. \throws Error (invalid_argument) when there
  /// are no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }
};

static_assert(Schedule<OneFOneBSchedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/one_f_one_b_schedule.ipp>
#endif
