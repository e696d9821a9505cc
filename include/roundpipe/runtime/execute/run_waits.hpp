// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief All that an action of a run waits for, in its own run and in earlier ones.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>

namespace roundpipe {

/// Goes through what action \p id of \p run waits for, except in runs that have retired. For an
/// action of a device, blocks until the action is issued and calls `on_event(event)` with the event
/// at its end; for an action of the host, calls `on_host(lane, sequence)` with its lane and its
/// place in the lane's whole history. After an exception no run goes on.
template <Backend B, class OnEvent, class OnHost>
void for_each_wait(GraphRun<B>& run, ActionId id, OnEvent&& on_event, OnHost&& on_host) {
  auto const end_of = [](GraphRun<B>& other, ActionId wait) -> typename B::Event& {
    other.wait_issued(wait);
    return other.end_event(wait);
  };
  for (auto const wait : run.program()[id].waits) {
    auto const& lane = run.program()[wait].lane;
    if (lane.device.valid()) {
      on_event(end_of(run, wait));
    } else {
      on_host(lane.kind, run.host_sequence(wait));
    }
  }
  for (auto const& earlier : run.external(id)) {
    if (earlier.run == nullptr) {
      on_host(earlier.lane, earlier.sequence);
    } else if (earlier.run->pin(earlier.number)) {
      on_event(end_of(static_cast<GraphRun<B>&>(*earlier.run), earlier.action));
      earlier.run->unpin();
    }
  }
}

}  // namespace roundpipe
