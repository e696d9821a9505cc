// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns a run's waits for earlier runs into waits across runs.

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_history.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace roundpipe {

/// Resolves the waits of a run for earlier runs, and remembers the run for later ones. It belongs
/// to the controller's thread.
class RunHistory {
 public:
  /// Whether a device's action of a run in flight is issued and done.
  using IsDone = std::function<bool(RunState&, ActionId)>;

  explicit RunHistory(IsDone is_done) : is_done_(std::move(is_done)) {}

  /// Completes \p run, which has begun: its ring bases and its waits across runs, each of
  /// which pins the run that it waits for.
  void resolve(RunState& run) {
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
          return;  // a wait would only keep the run from being used again
        }
        earlier->pin();
        run.add_external(id, CrossRunWait{earlier, past.action, past.lane.kind, 0});
      } else {
        auto const sequence = earlier->host_sequence(past.action);
        run.add_external(id, CrossRunWait{nullptr, past.action, past.lane.kind, sequence});
      }
    });
  }

  /// Adds what \p run does. Its host bases are set.
  void remember(RunState& run) {
    history_.remember(run.program().graph(), run.place(), run.number());
    if (std::ranges::find(slots_, &run) == slots_.end()) {
      slots_.push_back(&run);
    }
  }

 private:
  /// Run \p number; null when it is over.
  [[nodiscard]] RunState* find_in_flight(std::size_t number) const {
    auto const found = std::ranges::find_if(
        slots_, [&](RunState const* run) { return run->number() == number && run->in_flight(); });
    return found == slots_.end() ? nullptr : *found;
  }

  IsDone is_done_;
  GraphHistory<std::size_t> history_;  // of runs, by their numbers
  std::vector<RunState*> slots_;       // that have run
};

}  // namespace roundpipe
