// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_history.hpp>
#include <roundpipe/runtime/execute/run_history.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <algorithm>
#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE void RunHistory::resolve(RunState& run) {
  auto const& graph = run.program().graph();
  for (auto const& [ring, use] : graph.rings) {
    run.set_ring_base(ring, history_.ring_base(run.place().physical(ring)));
  }
  history_.resolve(graph, run.place(), [&](ActionId id, auto const& past) {
    auto* const earlier = find_in_flight(past.run);
    if (earlier == nullptr) {
      return;
    }
    if (past.lane.device.valid()) {
      if (is_done_(*earlier, past.action)) {
        return;  // no time that a device idles is due to it
      }
      run.add_external(id, CrossRunWait{earlier, past.run, past.action, past.lane.kind, 0});
    } else {
      auto const sequence = earlier->host_sequence(past.action);
      run.add_external(id, CrossRunWait{nullptr, past.run, past.action, past.lane.kind, sequence});
    }
  });
}

ROUNDPIPE_INLINE void RunHistory::remember(RunState& run) {
  history_.remember(run.program().graph(), run.place(), run.number());
  if (std::find(slots_.begin(), slots_.end(), &run) == slots_.end()) {
    slots_.push_back(&run);
  }
}

ROUNDPIPE_INLINE RunState* RunHistory::find_in_flight(std::size_t number) const {
  auto const found = std::find_if(slots_.begin(), slots_.end(), [&](RunState const* run) {
    return run->number() == number && run->in_flight();
  });
  return found == slots_.end() ? nullptr : *found;
}

}  // namespace roundpipe
