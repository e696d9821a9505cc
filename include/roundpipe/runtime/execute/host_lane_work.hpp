// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What does the actions of one host lane.

#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <exception>

namespace roundpipe {

/// \brief The work of one host lane.
///
/// To add work, derive from this, let a graph give its actions to the lane, and name the work in
/// \ref HostSide::lanes.
class HostLaneWork {
 public:
  /// \p lane says which lane it is, and how an executor treats it.
  explicit HostLaneWork(HostLaneTraits lane) : lane_(lane) {}

  [[nodiscard]] HostLaneTraits const& lane() const noexcept { return lane_; }

  /// Does action \p id of \p run before it returns, and throws when that fails. The lane's thread
  /// calls it, in the order of the graphs.
  virtual void run(RunState const& run, ActionId id) = 0;

  /// Called once on the lane's thread when an error stops the lane before action \p id of \p run,
  /// or when the action has failed; reason: work that is half done may be better finished.
  virtual void abandon(RunState const& /*run*/, ActionId /*id*/) {}

  /// Called once, on any thread, when \p error stops everything. Work that waits for what another
  /// process does must not wait any longer.
  virtual void interrupt(std::exception_ptr const& /*error*/) noexcept {}

 protected:
  HostLaneWork(HostLaneWork const&) = default;
  HostLaneWork& operator=(HostLaneWork const&) = default;
  ~HostLaneWork() = default;

 private:
  HostLaneTraits lane_;
};

}  // namespace roundpipe
