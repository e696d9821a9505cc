// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How far one run of a graph is, and the earlier runs that it waits for.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_history.hpp>
#include <roundpipe/graph/issuer.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace roundpipe {

using RunClock = std::chrono::steady_clock;

class RunState;

/// An action of an earlier run that a later one waits for.
struct CrossRunWait {
  RunState* run = nullptr;  ///< The slot; null for the host's lanes, whose sequence says all.
  std::size_t number = 0;   ///< Of the run, which may have left the slot by then.
  ActionId action;
  LaneKind lane = LaneKind::compute;
  std::uint64_t sequence = 0;
};

/// What a \ref GraphRun keeps besides events, whatever the backend.
class RunState {
 public:
  /// \p program and \p call must outlive this.
  RunState(GraphProgram const& program, CallData& call)
      : program_(&program),
        call_(&call),
        issued_(issuers_of(program.graph().devices)),
        external_(program.graph().actions.size()),
        host_times_(program.graph().actions.size()) {}

  [[nodiscard]] GraphProgram const& program() const noexcept { return *program_; }
  /// What the run is about; it changes between runs only.
  [[nodiscard]] CallData const& call() const noexcept { return *call_; }
  [[nodiscard]] std::size_t devices() const noexcept { return program_->graph().devices; }

  /// The run's number in the order in which runs were posted.
  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  /// Where the run stands among others.
  [[nodiscard]] GraphBinding const& place() const noexcept { return place_; }
  [[nodiscard]] bool in_flight() const noexcept { return in_flight_; }

  /// The device that plays a relative one.
  [[nodiscard]] DeviceId physical(DeviceId relative) const noexcept {
    return place_.physical(relative);
  }
  [[nodiscard]] DeviceId relative(DeviceId physical) const noexcept {
    return DeviceId((physical.index() + devices() - place_.first_device) % devices());
  }

  /// Where a ring stood when the run began, to be added to a buffer's sequence.
  [[nodiscard]] std::size_t ring_base(Ring const& ring) const { return ring_bases_.at(ring); }

  /// Says that the issuer of \p id has issued its list up to and with that.
  void set_issued(ActionId id);
  [[nodiscard]] bool is_issued(ActionId id) const;
  /// Blocks until \p id is issued (or the pipeline stops).
  void wait_issued(ActionId id) const;
  /// Lets every \ref wait_issued and \ref retire pass, until \ref reset.
  void release_waiters();
  /// The run is over, whatever it was, and its waiters are not released any more. Nothing may wait.
  void reset() noexcept;

  /// What \p id waits for besides its own run's actions.
  [[nodiscard]] std::vector<CrossRunWait> const& external(ActionId id) const {
    return external_[id.index()];
  }

  /// The place of a host action's end in its lane's whole history.
  [[nodiscard]] std::uint64_t host_sequence(ActionId id) const {
    return host_base((*program_)[id].lane.kind) + program_->position(id) + 1;
  }
  /// How many actions of lane \p kind were posted before the run.
  [[nodiscard]] std::uint64_t host_base(LaneKind kind) const {
    return host_bases_[host_lane_index(kind)];
  }

  /// Keeps run \p number in the slot until \ref unpin, so that its events are not recorded anew.
  /// \returns Whether it is there. If not, it has retired, so there is nothing to wait for.
  [[nodiscard]] bool pin(std::size_t number);
  void unpin();

  /// When a host action ran.
  struct HostTimes {
    RunClock::time_point start;
    RunClock::time_point end;
  };
  [[nodiscard]] HostTimes& host_times(ActionId id) { return host_times_[id.index()]; }

  // What the executor's controller sets when it posts the run.

  /// Lets nothing wait for the slot's run any more, which is complete; blocks while it is pinned
  /// (unless the pipeline stops).
  void retire();
  /// Begins run \p number, after \ref retire.
  void begin(std::size_t number, GraphBinding const& place);
  void set_ring_base(Ring const& ring, std::size_t base) { ring_bases_[ring] = base; }
  /// \p base actions of lane \p kind were posted before.
  void set_host_base(LaneKind kind, std::uint64_t base);
  void add_external(ActionId id, CrossRunWait wait) { external_[id.index()].push_back(wait); }
  void start() noexcept { in_flight_ = true; }
  void finish() noexcept { in_flight_ = false; }

 private:
  static constexpr auto released = std::numeric_limits<std::uint64_t>::max();
  static constexpr auto unpinned_for_good = std::numeric_limits<std::int64_t>::min() / 2;
  static constexpr auto none = std::numeric_limits<std::size_t>::max();

  struct Issued {
    std::atomic<std::uint64_t> value{0};
  };

  [[nodiscard]] std::size_t issuer_of(ActionId id) const {
    return Issuer::of((*program_)[id].lane).index();
  }
  [[nodiscard]] std::uint64_t issue_mark(std::size_t position) const noexcept {
    return (generation_ << 32U) + position + 1;
  }

  GraphProgram const* program_;
  CallData const* call_;
  std::vector<Issued> issued_;  // by relative issuer
  std::vector<std::vector<CrossRunWait>> external_;
  std::vector<HostTimes> host_times_;
  std::map<Ring, std::size_t> ring_bases_;
  std::vector<std::uint64_t> host_bases_;
  std::atomic<std::int64_t> pins_{0};
  std::atomic<std::size_t> waitable_{none};  // the run that may be pinned
  std::uint64_t generation_ = 0;  // counts the runs in this slot; an older one's actions are done
  std::size_t number_ = 0;
  GraphBinding place_;
  bool in_flight_ = false;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/execute/impl/run_state.ipp>
#endif
