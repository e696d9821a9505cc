// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Work for the executor's parts that only logs the actions.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/action_work.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>

#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace roundpipe::test {

/// Models ActionWork on the host backend. Several threads may use it at once.
class LoggedWork {
 public:
  /// Called with every action that is issued on a device or run on the host; the work rethrows its
  /// exceptions.
  std::function<void(ActionId)> hook = [](ActionId) {};
  /// Called with every action whose work runs on a device.
  std::function<void(ActionId)> device_hook = [](ActionId) {};

  void issue(GraphRun<HostBackend>&, ActionId id, HostStream& stream, DeviceId) {
    hook(id);
    stream.launch([this, id] {
      device_hook(id);
      add(done_, id);
    });
  }
  void run(GraphRun<HostBackend>&, ActionId id) {
    hook(id);
    add(done_, id);
  }
  void abandon(GraphRun<HostBackend>&, ActionId id) {
    add(abandoned_, id);
    throw Error(Errc::aborted, "nobody is to see this");
  }

  [[nodiscard]] std::span<HostLaneTraits const> host_lanes() const { return lanes; }

  /// The host lanes that the work serves. Set it before an executor is made.
  std::vector<HostLaneTraits> lanes = {
      {LaneKind::accumulate}, {LaneKind::parameter_copy}, {LaneKind::optimizer, true, true}};

  /// The actions whose work is done, in the order of their ends.
  [[nodiscard]] std::vector<ActionId> done() const { return copy(done_); }
  [[nodiscard]] std::vector<ActionId> abandoned() const { return copy(abandoned_); }

 private:
  void add(std::vector<ActionId>& list, ActionId id) {
    std::lock_guard const lock(mutex_);
    list.push_back(id);
  }
  [[nodiscard]] std::vector<ActionId> copy(std::vector<ActionId> const& list) const {
    std::lock_guard const lock(mutex_);
    return list;
  }

  mutable std::mutex mutex_;
  std::vector<ActionId> done_;
  std::vector<ActionId> abandoned_;
};

static_assert(ActionWork<LoggedWork, HostBackend>);

}  // namespace roundpipe::test
