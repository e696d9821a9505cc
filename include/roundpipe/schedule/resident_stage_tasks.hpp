// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Builds the task lists of schedules that bind stages to devices.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// \brief The task lists of a call. A forward stage and the backward stage of the same layers form
/// a *place*: place p holds the layers of the p-th stage, counted from the model's first layer.
///
/// When the last place is fused, its forward writes nothing and its backward writes the fused task.
/// A schedule that runs each backward right after its forward thus serves both kinds of shapes. In
/// a forward-only call, backwards write nothing.
class ResidentStageTasks {
 public:
  /// \throws Error (invalid_argument) when there are no stages, devices, micro-batches or rounds,
  /// or when backward stages do not mirror the forward ones.
  explicit ResidentStageTasks(ScheduleShape const& shape);

  /// The number of places.
  [[nodiscard]] std::size_t places() const noexcept {
    return forward_only() ? shape_.forward_stages : shape_.backward_stages;
  }
  [[nodiscard]] bool forward_only() const noexcept { return shape_.backward_stages == 0; }

  /// The next micro-batch to compute: number \p m of round \p round.
  struct Turn {
    std::size_t device;
    std::size_t place;
    std::size_t round;
    std::size_t m;
  };

  void forward(Turn const& turn);
  /// Writes recomputation and backward.
  void backward(Turn const& turn);
  /// Writes recomputation and the half of the backward that the previous place waits for.
  /// Precondition: the place is not fused.
  void input_gradient(Turn const& turn);
  /// Writes the other half. Precondition: the place is not fused.
  void weight_gradient(Turn const& turn);

  [[nodiscard]] DeviceTasks take() && { return std::move(tasks_); }

 private:
  [[nodiscard]] StageId backward_stage(Turn const& turn) const noexcept {
    return StageId(shape_.stages() - 1 - turn.place);
  }
  void add(Turn const& turn, StageId stage, std::vector<TaskKind> const& kinds);

  ScheduleShape shape_;
  DeviceTasks tasks_;
};

/// \throws Error (invalid_argument) with \p message when \p shape has a fused stage.
void refuse_fused(ScheduleShape const& shape, char const* message);

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/resident_stage_tasks.ipp>
#endif
