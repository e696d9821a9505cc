// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns a run's waits for earlier runs into waits across runs.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_history.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>

#include <cstdint>

namespace roundpipe {

/// Resolves the waits of a run for earlier runs, and remembers the run for later ones. It belongs
/// to the controller's thread.
template <Backend B>
class RunHistory {
 public:
  /// Completes \p run, which has begun: its ring bases and its waits across runs, each of
  /// which pins the run that it waits for.
  void resolve(GraphRun<B>& run) {
    auto const& graph = run.program().graph();
    for (auto const& [ring, use] : graph.rings) {
      run.set_ring_base(ring, history_.ring_base(run.place().physical(ring)));
    }
    history_.resolve(graph, run.place(), [&](ActionId id, auto const& past) {
      auto& earlier = *past.run.run;
      if (past.run.is_over()) {
        return;
      }
      if (past.lane.device.valid()) {
        if (earlier.is_issued(past.action) && earlier.end_event(past.action).ready()) {
          return;  // a wait would only keep the run from being used again
        }
        earlier.pin();
        run.add_external(id, {&earlier, past.action, past.lane.kind, 0});
      } else {
        auto const sequence = earlier.host_sequence(past.action);
        run.add_external(id, {nullptr, past.action, past.lane.kind, sequence});
      }
    });
  }

  /// Adds what \p run does. Its host bases are set.
  void remember(GraphRun<B>& run) {
    history_.remember(run.program().graph(), run.place(), {&run, run.generation()});
  }

 private:
  /// One use of a slot for runs.
  struct PastRun {
    GraphRun<B>* run;
    std::uint64_t generation;

    [[nodiscard]] bool is_over() const {
      return run->generation() != generation || !run->in_flight();
    }
    friend bool operator==(PastRun const&, PastRun const&) noexcept = default;
  };

  GraphHistory<PastRun> history_;
};

}  // namespace roundpipe
