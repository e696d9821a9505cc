// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief ZB-H1: 1F1B whose split backwards fill its bubbles.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

/// \brief Stage r of P runs on device r as in 1F1B, but its backward in two halves: the one of the
/// input, which the stage before waits for, at once, and the one of the weights r micro-batches
/// later, so that those that are left fill the drain (ZB-H1, Qi et al. 2023, arXiv:2401.10241,
/// section 2.1).
///
/// No stage is fused, as each backward is split. Devices beyond the number of stages idle. In
/// flight until the weights' half is done: min(M, P) micro-batches at every stage, which is what
/// 1F1B's first stage holds. Bubble of P equal stages with forwards of F and halves of B and W,
/// where W <= F, W <= B and M >= P: (P - 1)(F + B - W) a device, where 1F1B has
/// (P - 1)(F + B + W). Rounds run one after another.
class ZbH1Schedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return false; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, more stages than devices, backward stages that do
  /// not mirror forward ones, or a fused stage.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    detail::ResidentStageTasks tasks(shape);
    detail::refuse_fused(shape, "ZB-H1 splits every backward: no stage is fused");
    require(tasks.places() <= shape.devices,
            Errc::invalid_argument,
            "ZB-H1 needs a device for each stage");
    auto const count = shape.micro_batches_per_round;
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      for (std::size_t place = 0; place < tasks.places(); ++place) {
        auto const warm_up = std::min(tasks.places() - 1 - place, count);
        auto const delayed = warm_up + place;
        for (std::size_t m = 0; m < count + delayed; ++m) {
          if (m < count) {
            tasks.forward({place, place, round, m});
          }
          if (m >= warm_up && m < count + warm_up) {
            tasks.input_gradient({place, place, round, m - warm_up});
          }
          if (m >= delayed) {
            tasks.weight_gradient({place, place, round, m - delayed});
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

static_assert(Schedule<ZbH1Schedule>);

}  // namespace roundpipe
