// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host lane of P copies, from the optimizer copy to the only master copy.

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/actions/host_lane_work.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <mutex>

namespace roundpipe {

/// Rounds optimizer copies to master copies, where updates do not write those themselves.
class ParameterCopier {
 public:
  static constexpr HostLaneTraits lane{LaneKind::parameter_copy};

  /// \p memory must outlive this. It has \p threads threads, pinned to \p cpus if there are any.
  ParameterCopier(ParameterMemory const& memory, std::size_t threads, UsableCpus const& cpus)
      : memory_(memory), pool_(threads, cpus) {}

  void run(Action const& action, CallData const&) { copy(action.block); }

  /// The only master copy of \p block becomes the optimizer copy, rounded.
  void copy(BlockId block) {
    std::lock_guard const lock(memory_.copying());
    for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
      auto const weights = memory_.weights(block, t, 0);
      auto const master = memory_.master(block, t, 0);
      pool_.for_each_part(weights.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
        copy_pass({weights.part(begin, end), {}, {}, master.part(begin, end)});
      });
    }
  }

 private:
  ParameterMemory const& memory_;
  WorkerPool pool_;
};

static_assert(HostLaneWork<ParameterCopier>);

}  // namespace roundpipe
