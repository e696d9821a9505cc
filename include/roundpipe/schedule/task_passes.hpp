// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The tasks of a stage, and the passes of a task.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <span>
#include <vector>

namespace roundpipe {

/// The passes that a task of \p kind runs on each layer of its stage, in order, with `layer` 0.
[[nodiscard]] constexpr std::span<Pass const> layer_passes(TaskKind kind) noexcept {
  switch (kind) {
    case TaskKind::forward:
      return {&forward_pass, 1};
    case TaskKind::recompute:
      return {&recompute_pass, 1};
    case TaskKind::backward:
      return {&backward_pass, 1};
    case TaskKind::fused:
      return layer_passes(StageKind::fused);
    case TaskKind::input_gradient:
      return {&input_gradient_pass, 1};
    case TaskKind::weight_gradient:
      break;
  }
  return {&weight_gradient_pass, 1};
}

/// The task that runs only passes of \p kind.
[[nodiscard]] constexpr TaskKind task_kind(PassKind kind) noexcept {
  switch (kind) {
    case PassKind::forward:
      return TaskKind::forward;
    case PassKind::recompute:
      return TaskKind::recompute;
    case PassKind::backward:
      return TaskKind::backward;
    case PassKind::input_gradient:
      return TaskKind::input_gradient;
    case PassKind::weight_gradient:
      break;
  }
  return TaskKind::weight_gradient;
}

/// The tasks of a stage of \p kind for one micro-batch, in order: one for each kind of pass. The
/// fused stage is a single task.
[[nodiscard]] inline std::vector<TaskKind> task_kinds(StageKind kind) {
  if (kind == StageKind::fused) {
    return {TaskKind::fused};
  }
  std::vector<TaskKind> kinds;
  for (auto const& pass : layer_passes(kind)) {
    kinds.push_back(task_kind(pass.kind));
  }
  return kinds;
}

}  // namespace roundpipe
