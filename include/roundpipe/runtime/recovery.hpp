// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Takes a training back to its last finished step, so that it can go on from there.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/runtime/execute/executor.hpp>
#include <roundpipe/runtime/host_side.hpp>
#include <roundpipe/runtime/training_runs.hpp>

namespace roundpipe {

/// Waits until nothing is under way, lets \p executor run again where an error has stopped it, and
/// drops all that was posted after the last finished step: the next call is as it would be if
/// nothing had been.
/// \throws Error (aborted) when an error has stopped a step half way, or the group has ended, and
///         as \ref Executor::recover does. Then nothing has changed.
template <Backend B, Optimizer O>
void recover(Executor<B>& executor, HostSide<B, O>& host, TrainingRuns<B>& training) {
  executor.settle();
  host.group.rethrow();
  host.weights.require_resumable();
  executor.recover();
  host.progress.resume();
  if (host.progress.trains()) {
    training.go_back_to(host.progress.finished_steps());
  } else {  // a step is over when it is posted
    training.go_back_to(training.posted().steps);
  }
  if (training.copies_parameters()) {
    training.set_visible(host.progress.copied_step());
  }
}

}  // namespace roundpipe
