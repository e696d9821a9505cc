// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Maps actions to passes and back.

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/stage_passes.hpp>

namespace roundpipe {

/// The kind of action that runs \p pass. Every saving forward counts as a recomputation.
[[nodiscard]] constexpr ActionKind action_kind(Pass const& pass) noexcept {
  switch (pass.kind) {
    case PassKind::forward:
      return pass.saves.has(PassData::activations) || pass.writes.has(PassData::kept)
                 ? ActionKind::recompute
                 : ActionKind::forward;
    case PassKind::recompute:
      return ActionKind::recompute;
    case PassKind::backward:
      return ActionKind::backward;
    case PassKind::input_gradient:
      return ActionKind::input_gradient;
    case PassKind::weight_gradient:
      break;
  }
  return ActionKind::weight_gradient;
}

/// The pass that a compute action runs. \p has_run_forward says whether an earlier stage of the
/// graph has run its layer forward, for this micro-batch.
[[nodiscard]] constexpr PassKind pass_kind(ActionKind kind, bool has_run_forward) noexcept {
  switch (kind) {
    case ActionKind::forward:
      return PassKind::forward;
    case ActionKind::recompute:
      return layer_passes(backward_kind(has_run_forward)).front().kind;
    case ActionKind::backward:
      return PassKind::backward;
    case ActionKind::input_gradient:
      return PassKind::input_gradient;
    default:
      return PassKind::weight_gradient;
  }
}

}  // namespace roundpipe
