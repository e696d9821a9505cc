// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>
#include <roundpipe/schedule/task_passes.hpp>

#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE ResidentStageTasks::ResidentStageTasks(ScheduleShape const& shape)
    : shape_(shape) {
  check(shape);
  require(forward_only() || shape.backward_stages == shape.forward_stages + (shape.fused ? 1 : 0),
          Errc::invalid_argument,
          "a schedule that binds stages to devices needs backward stages that mirror the forward "
          "ones: as many, and the fused one");
  tasks_.resize(shape.devices);
}

ROUNDPIPE_INLINE void ResidentStageTasks::forward(Turn const& turn) {
  if (turn.place < shape_.forward_stages) {
    add(turn, StageId(turn.place), task_kinds(StageKind::forward));
  }
}

ROUNDPIPE_INLINE void ResidentStageTasks::backward(Turn const& turn) {
  if (!forward_only()) {
    add(turn, backward_stage(turn), task_kinds(stage_kind(shape_, backward_stage(turn))));
  }
}

ROUNDPIPE_INLINE void ResidentStageTasks::input_gradient(Turn const& turn) {
  if (!forward_only()) {
    add(turn, backward_stage(turn), {TaskKind::recompute, TaskKind::input_gradient});
  }
}

ROUNDPIPE_INLINE void ResidentStageTasks::weight_gradient(Turn const& turn) {
  if (!forward_only()) {
    add(turn, backward_stage(turn), {TaskKind::weight_gradient});
  }
}

ROUNDPIPE_INLINE void ResidentStageTasks::add(Turn const& turn,
                                              StageId stage,
                                              std::vector<TaskKind> const& kinds) {
  for (auto const kind : kinds) {
    tasks_[turn.device].push_back({stage, kind, RoundId(turn.round), MicroBatchId(turn.m)});
  }
}

ROUNDPIPE_INLINE void refuse_fused(ScheduleShape const& shape, char const* message) {
  require(!shape.fused || shape.backward_stages == 0, Errc::invalid_argument, message);
}

}  // namespace detail

}  // namespace roundpipe
