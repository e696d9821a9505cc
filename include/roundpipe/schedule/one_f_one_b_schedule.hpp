// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief 1F1B: forwards and backwards in turn, so that few micro-batches are in flight.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

/// \brief Stage r of P runs on device r: P - 1 - r forwards, then a forward and a backward in turn,
/// then the backwards that are left (PipeDream-Flush, Narayanan et al. 2021, arXiv:2006.09503;
/// DAPPLE, Fan et al. 2021).
///
/// The last stage's backward follows its forward at once, so that it is fused and recomputes
/// nothing; shapes that do not fuse it are run as well. Devices beyond the number of stages idle.
/// In flight at stage r: min(M, P - r) micro-batches. Bubble of P equal stages on P devices:
/// (P - 1) / (M + P - 1), that of GPipe. Rounds run one after another.
class OneFOneBSchedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return true; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, more stages than devices, or backward stages that do
  /// not mirror forward ones.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    detail::ResidentStageTasks tasks(shape);
    require(tasks.places() <= shape.devices,
            Errc::invalid_argument,
            "1F1B needs a device for each stage");
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      for (std::size_t place = 0; place < tasks.places(); ++place) {
        auto const warm_up = std::min(tasks.places() - 1 - place, shape.micro_batches_per_round);
        for (std::size_t m = 0; m < shape.micro_batches_per_round + warm_up; ++m) {
          if (m < shape.micro_batches_per_round) {
            tasks.forward({place, place, round, m});
          }
          if (m >= warm_up) {
            tasks.backward({place, place, round, m - warm_up});
          }
        }
      }
    }
    return std::move(tasks).take();
  }

  /// Devices keep their stages from call to call. \throws Error (invalid_argument) when there are
  /// no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }
};

static_assert(Schedule<OneFOneBSchedule>);

}  // namespace roundpipe
