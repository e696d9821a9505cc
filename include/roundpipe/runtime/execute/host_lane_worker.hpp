// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Does the actions of one of the host's lanes, each after what it waits for.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/action_work.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>
#include <roundpipe/runtime/execute/host_progress.hpp>
#include <roundpipe/runtime/execute/run_waits.hpp>

#include <cstdint>

namespace roundpipe {

/// One lane of the host. For one thread.
template <Backend B, ActionWork<B> W>
class HostLaneWorker {
 public:
  /// All arguments must outlive the worker.
  HostLaneWorker(B& backend, W& work, HostProgress<B>& hosts, HostLaneTraits const& lane)
      : backend_(backend), work_(work), hosts_(hosts), lane_(lane) {}

  [[nodiscard]] HostLaneTraits const& lane() const noexcept { return lane_; }

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
    if constexpr (requires { backend_.before_host_action(lane_.kind); }) {
      backend_.before_host_action(lane_.kind);
    }
    auto& times = run.host_times(id);
    times.start = RunClock::now();
    run_located(run, id, "", [&] { work_.run(run, id); });
    times.end = RunClock::now();
    hosts_.finish(lane_.kind, run.host_sequence(id));
  }

  /// Leaves out action \p id of \p run and all behind it, because of an error. What the work throws
  /// here is dropped: it comes after that error.
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
  HostLaneTraits lane_;
};

}  // namespace roundpipe
