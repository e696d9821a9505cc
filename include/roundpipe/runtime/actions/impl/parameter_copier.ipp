// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/runtime/actions/parameter_copier.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE void ParameterCopier::run(RunState const& run, ActionId id) {
  auto const& program = run.program();
  if (!progress_.is_copying()) {
    progress_.set_copying(true);
    if (program.graph().role == GraphRole::step && !progress_.begin(run.call().iteration)) {
      progress_.set_copying(false);
      throw Error(Errc::aborted, "an error has called the step off");
    }
  }
  copy(program[id].block);
  if (id == program.of_host(LaneKind::parameter_copy).back()) {
    progress_.set_copied_step(run.call().iteration - 1);
    progress_.set_copying(false);
  }
}

ROUNDPIPE_INLINE void ParameterCopier::abandon(RunState const& run, ActionId id) {
  auto const& program = run.program();
  auto const copies = program.of_host(LaneKind::parameter_copy);
  auto const may_finish = finishes_steps_ || program.graph().role == GraphRole::flush;
  for (auto i = program.position(id); progress_.is_copying() && may_finish && i < copies.size();
       ++i) {
    this->run(run, copies[i]);
  }
}

ROUNDPIPE_INLINE void ParameterCopier::copy(BlockId block) {
  memory_.readers()->wait(block);
  for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
    auto const weights = memory_.weights(block, t, 0);
    auto const master = memory_.own_master(block, t, 0);
    pool_.for_each_part(weights.size, host_work_grain, [&](std::size_t begin, std::size_t end) {
      copy_pass({weights.part(begin, end), {}, {}, master.part(begin, end)});
    });
  }
}

}  // namespace roundpipe
