// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host lane of P copies, from the optimizer copy to the only master copy.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>

namespace roundpipe {

/// Rounds optimizer copies to master copies, where updates do not write those themselves. The lane
/// finishes the copies of a run that have begun also after an error: all master copies hold the
/// weights of one step.
class ParameterCopier final : public HostLaneWork {
 public:
  /// \p memory and \p progress must outlive this. \p finishes_steps: whether a step that has begun
  /// has all its gradients. It has \p threads threads, pinned to \p cpus if there are any.
  ParameterCopier(ParameterMemory const& memory,
                  StepProgress& progress,
                  bool finishes_steps,
                  std::size_t threads,
                  UsableCpus const& cpus)
      : HostLaneWork({LaneKind::parameter_copy}),
        memory_(memory),
        progress_(progress),
        finishes_steps_(finishes_steps),
        pool_(threads, cpus) {}

  /// \throws Error (aborted) for a step that was called off.
  void run(RunState const& run, ActionId id) override;

  /// Finishes the copies of a run that have begun before action \p id.
  void abandon(RunState const& run, ActionId id) override;

  /// The only master copy of \p block becomes the optimizer copy, rounded. Waits for those who read
  /// it.
  void copy(BlockId block);

 private:
  ParameterMemory const& memory_;
  StepProgress& progress_;
  bool finishes_steps_;
  WorkerPool pool_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/parameter_copier.ipp>
#endif
