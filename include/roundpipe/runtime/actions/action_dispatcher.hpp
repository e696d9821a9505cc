// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Hands each action of a pipeline's graphs to whoever does it.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/actions/host_lane_work.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <array>
#include <span>
#include <tuple>

namespace roundpipe {

/// Hands devices' actions to \p Devices, and those of each host lane to the work of that lane;
/// models \ref ActionWork. It knows no lane and no kind of action by name.
template <class Devices, HostLaneWork... Lanes>
class ActionDispatcher {
 public:
  /// All arguments must outlive the dispatcher.
  explicit ActionDispatcher(Devices& devices, Lanes&... lanes)
      : devices_(devices), lanes_(lanes...) {}

  [[nodiscard]] static std::span<HostLaneTraits const> host_lanes() noexcept {
    static constexpr std::array<HostLaneTraits, sizeof...(Lanes)> lanes{Lanes::lane...};
    return lanes;
  }

  template <class Stream>
  void issue(RunState& run, ActionId id, Stream& stream, DeviceId device) {
    devices_.issue(run, id, stream, device);
  }

  void run(RunState& run, ActionId id) {
    with_lane_of(run, id, [&](auto& work) { work.run(run.program()[id], run.call()); });
  }

  void abandon(RunState& run, ActionId id) {
    with_lane_of(run, id, [&](auto& work) {
      if constexpr (requires { work.abandon(run.program().graph(), id, run.call()); }) {
        work.abandon(run.program().graph(), id, run.call());
      }
    });
  }

 private:
  /// Calls \p f with the work of the lane that action \p id is on.
  template <class F>
  void with_lane_of(RunState const& run, ActionId id, F&& f) {
    auto const kind = run.program()[id].lane.kind;
    auto const does = [&]<class Work>(Work& work) {
      if (Work::lane.kind != kind) {
        return false;
      }
      f(work);
      return true;
    };
    bool const done = std::apply([&](auto&... works) { return (does(works) || ...); }, lanes_);
    require(done, Errc::unsupported, "a device's action stands on a lane of the host");
  }

  Devices& devices_;
  std::tuple<Lanes&...> lanes_;
};

}  // namespace roundpipe
