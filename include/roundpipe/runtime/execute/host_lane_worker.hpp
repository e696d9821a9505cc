// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Does the actions of one of the host's lanes, each after what it waits for.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/host_progress.hpp>
#include <roundpipe/runtime/execute/run_located.hpp>
#include <roundpipe/runtime/execute/run_waits.hpp>

#include <cstdint>
#include <exception>

namespace roundpipe {

/// One lane of the host. For one thread.
template <Backend B>
class HostLaneWorker {
 public:
  /// All arguments must outlive the worker.
  HostLaneWorker(B& backend, HostLaneWork& work, HostProgress<B>& hosts)
      : backend_(backend), work_(work), hosts_(hosts) {}

  [[nodiscard]] HostLaneTraits const& lane() const noexcept { return work_.lane(); }

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
    auto& times = run.host_times(id);
    run_located(run, id, "", [&] {
      if constexpr (HasHostActionHook<B>) {
        backend_.before_host_action(lane().kind);
      }
      times.start = RunClock::now();
      work_.run(run, id);
    });
    times.end = RunClock::now();
    hosts_.finish(lane().kind, run.host_sequence(id));
  }

  /// Lets the work wait for nobody, because of \p error. Any thread may call it.
  void interrupt(std::exception_ptr const& error) noexcept { work_.interrupt(error); }

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
  HostLaneWork& work_;
  HostProgress<B>& hosts_;
};

}  // namespace roundpipe
