// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>
#include <roundpipe/schedule/zb_h1_schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks ZbH1Schedule::tasks(ScheduleShape const& shape) const {
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

}  // namespace roundpipe
