// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/dualpipe_schedule.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks DualPipeSchedule::tasks(ScheduleShape const& shape) const {
  detail::ResidentStageTasks tasks(shape);
  detail::refuse_fused(
      shape, "DualPipe runs other work between a forward and its backward: no stage is fused");
  auto const n = shape.devices;
  require(n % 2 == 0, Errc::invalid_argument, "DualPipe needs an even number of devices");
  require(tasks.places() == n, Errc::invalid_argument, "DualPipe needs as many stages as devices");
  require(shape.micro_batches_per_round % 2 == 0 && shape.micro_batches_per_round >= 2 * (n - 1),
          Errc::invalid_argument,
          "DualPipe needs an even number of micro-batches, at least 2 (N - 1) of them");
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    for (std::size_t device = 0; device < n; ++device) {
      write(tasks, shape, round, device);
    }
  }
  return std::move(tasks).take();
}

ROUNDPIPE_INLINE void DualPipeSchedule::Writer::input_gradient(End end) {
  later_.push_back(turn(end, backwards_[end]++));
  tasks_.input_gradient(later_.back());
}

ROUNDPIPE_INLINE DualPipeSchedule::Writer::Turn DualPipeSchedule::Writer::turn(
    End end, std::size_t i) const {
  // The first half of the micro-batches enters at device 0.
  auto const first_half = (device_ < devices_ / 2) == (end == near);
  auto const place = first_half ? device_ : devices_ - 1 - device_;
  return {device_, place, round_, first_half ? i : half_ + i};
}

ROUNDPIPE_INLINE void DualPipeSchedule::write(detail::ResidentStageTasks& tasks,
                                              ScheduleShape const& shape,
                                              std::size_t round,
                                              std::size_t device) {
  Writer writer(tasks, shape, round, device);
  auto const n = shape.devices;
  auto const from_end = std::min(device, n - 1 - device);
  auto const to_middle = n / 2 - 1 - from_end;
  auto const times = [](std::size_t count, auto&& what) {
    for (std::size_t i = 0; i < count; ++i) {
      what(i);
    }
  };
  // Fill: micro-batches of the near end first, then of both.
  times(2 * to_middle, [&](auto) { writer.forward(near); });
  times(from_end + 1, [&](auto) {
    writer.forward(near);
    writer.forward(far);
  });
  // Micro-batches of the far end turn back while more arrive: the device before waits for them.
  times(to_middle, [&](auto) {
    writer.input_gradient(far);
    writer.weight_gradient();
    writer.forward(far);
  });
  times(shape.micro_batches_per_round / 2 + from_end + 1 - n, [&](auto) {
    writer.forward(near);
    writer.backward(far);
    writer.forward(far);
    writer.backward(near);
  });
  // Drain: first no forwards of the near end are left, then none at all.
  times(to_middle, [&](auto) {
    writer.backward(far);
    writer.forward(far);
    writer.backward(near);
  });
  times(2 * (from_end + 1), [&](std::size_t i) {
    auto const end = i % 2 == 0 ? far : near;
    if (i <= from_end) {
      writer.backward(end);
    } else {
      writer.input_gradient(end);
    }
  });
  times(to_middle, [&](auto) {
    writer.weight_gradient();
    writer.input_gradient(near);
  });
  times(from_end + 1, [&](auto) { writer.weight_gradient(); });
}

}  // namespace roundpipe
