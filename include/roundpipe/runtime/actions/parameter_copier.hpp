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
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>

namespace roundpipe {

/// Rounds optimizer copies to master copies, where updates do not write those themselves.
class ParameterCopier final : public HostLaneWork {
 public:
  /// \p memory must outlive this. It has \p threads threads, pinned to \p cpus if there are any.
  ParameterCopier(ParameterMemory const& memory, std::size_t threads, UsableCpus const& cpus)
      : HostLaneWork({LaneKind::parameter_copy}), memory_(memory), pool_(threads, cpus) {}

  void run(RunState const& run, ActionId id) override { copy(run.program()[id].block); }

  /// The only master copy of \p block becomes the optimizer copy, rounded.
  void copy(BlockId block);

 private:
  ParameterMemory const& memory_;
  WorkerPool pool_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/parameter_copier.ipp>
#endif
