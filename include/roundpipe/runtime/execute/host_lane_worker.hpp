// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Does the actions of one of the host's lanes, each after what it waits for.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/action_work.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_progress.hpp>
#include <roundpipe/runtime/execute/run_waits.hpp>

#include <cstdint>

namespace roundpipe {

/// One lane of the host. For one thread.
template <Backend B, ActionWork<B> W>
class HostLaneWorker {
 public:
  /// All arguments must outlive the worker.
  HostLaneWorker(B& backend, W& work, HostProgress<B>& hosts, LaneKind kind)
      : backend_(backend), work_(work), hosts_(hosts), kind_(kind) {}

  [[nodiscard]] LaneKind kind() const noexcept { return kind_; }

  /// Blocks until what action \p id of \p run waits for is done, or released.
  void wait_for_all(GraphRun<B>& run, ActionId id) {
    for_each_wait(
        run,
        id,
        [](auto& event) { event.wait(); },
        [&](LaneKind lane, std::uint64_t sequence) { hosts_.wait(lane, sequence); });
  }

  /// Does action \p id of \p run, the lane's next, and says so.
  /// \throws Error with the action's name for what the work throws.
  void run(GraphRun<B>& run, ActionId id) {
    if constexpr (requires { backend_.before_host_action(kind_); }) {
      backend_.before_host_action(kind_);
    }
    auto& times = run.host_times(id);
    times.start = RunClock::now();
    run_located(run, id, "", [&] { work_.run(run, id); });
    times.end = RunClock::now();
    hosts_.finish(kind_, run.host_sequence(id));
  }

  /// Leaves out action \p id of \p run and all behind it, for an error that is known: what this
  /// throws is dropped, for it comes after that.
  void abandon(GraphRun<B>& run, ActionId id) noexcept {
    try {
      work_.abandon(run, id);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

 private:
  B& backend_;
  W& work_;
  HostProgress<B>& hosts_;
  LaneKind kind_;
};

}  // namespace roundpipe
