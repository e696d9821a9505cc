// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns a run's waits for earlier runs into waits across runs.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_history.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

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

  /// Completes \p run, which has begun: its ring bases and its waits across runs, but for what is
  /// done already.
  void resolve(RunState& run);

  /// Adds what \p run does. Its host bases are set.
  void remember(RunState& run);

  /// Forgets all runs: later ones wait for none of them.
  void forget() {
    history_ = {};
    slots_.clear();
  }

 private:
  /// Run \p number; null when it is over.
  [[nodiscard]] RunState* find_in_flight(std::size_t number) const;

  IsDone is_done_;
  GraphHistory<std::size_t> history_;  // of runs, by their numbers
  std::vector<RunState*> slots_;       // that have run
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/execute/impl/run_history.ipp>
#endif
