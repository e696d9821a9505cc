// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Work for the executor's parts that only logs the actions.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/device_work.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace roundpipe::test {

/// Work of devices and of host lanes. Several threads may use it at once.
class LoggedWork final : public DeviceWork<HostBackend> {
 public:
  /// Called with every action that is issued on a device or run on the host; the work rethrows its
  /// exceptions.
  std::function<void(ActionId)> hook = [](ActionId) {};
  /// Called with every action whose work runs on a device.
  std::function<void(ActionId)> device_hook = [](ActionId) {};
  /// The host lanes that \ref host_lanes serves.
  std::vector<HostLaneTraits> lanes = {
      {LaneKind::accumulate}, {LaneKind::parameter_copy}, {LaneKind::optimizer, true, true}};

  void issue(RunState const&, ActionId id, HostStream& stream, DeviceId) override {
    hook(id);
    stream.launch([this, id] {
      device_hook(id);
      add(done_, id);
    });
  }

  /// The work of each host lane, which throws when it is abandoned.
  [[nodiscard]] std::vector<HostLaneWork*> host_lanes() {
    std::vector<HostLaneWork*> works;
    for (auto const& lane : lanes) {
      works.push_back(&works_.emplace_back(*this, lane));
    }
    return works;
  }

  /// The actions whose work is done, in the order of their ends.
  [[nodiscard]] std::vector<ActionId> done() const { return copy(done_); }
  [[nodiscard]] std::vector<ActionId> abandoned() const { return copy(abandoned_); }
  /// How often an error has interrupted a lane.
  [[nodiscard]] int interruptions() const noexcept { return interruptions_; }

 private:
  class Lane final : public HostLaneWork {
   public:
    Lane(LoggedWork& log, HostLaneTraits lane) : HostLaneWork(lane), log_(log) {}
    void run(RunState const&, ActionId id) override {
      log_.hook(id);
      log_.add(log_.done_, id);
    }
    void abandon(RunState const&, ActionId id) override {
      log_.add(log_.abandoned_, id);
      throw Error(Errc::aborted, "nobody is to see this");
    }

    void interrupt(std::exception_ptr const& error) noexcept override {
      log_.interruptions_ += error ? 1 : 0;
    }

   private:
    LoggedWork& log_;
  };

  void add(std::vector<ActionId>& list, ActionId id) {
    std::lock_guard const lock(mutex_);
    list.push_back(id);
  }
  [[nodiscard]] std::vector<ActionId> copy(std::vector<ActionId> const& list) const {
    std::lock_guard const lock(mutex_);
    return list;
  }

  std::deque<Lane> works_;
  std::atomic<int> interruptions_ = 0;
  mutable std::mutex mutex_;
  std::vector<ActionId> done_;
  std::vector<ActionId> abandoned_;
};

}  // namespace roundpipe::test
