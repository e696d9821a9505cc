// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the actions of a pipeline's graphs mean.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <span>

namespace roundpipe {

/// Hands devices' actions to \p Devices and the host's to \p Store; models \ref ActionWork.
template <class Devices, class Store>
struct ActionDispatcher {
  Devices& devices;
  Store& parameters;
  /// Whether a step that has begun has all its gradients.
  bool finishes_steps = false;

  [[nodiscard]] static std::span<HostLaneTraits const> host_lanes() noexcept {
    static constexpr std::array<HostLaneTraits, 3> lanes{
        {{LaneKind::accumulate}, {LaneKind::parameter_copy}, {LaneKind::optimizer, true, true}}};
    return lanes;
  }

  template <class B>
  void issue(GraphRun<B>& run, ActionId id, typename B::Stream& stream, DeviceId device) {
    devices.issue(run, id, stream, device);
  }

  template <class B>
  void run(GraphRun<B>& run, ActionId id) {
    auto const& action = run.program()[id];
    auto const& call = run.call();
    switch (action.kind) {
      case ActionKind::accumulate_gradient:
        return parameters.accumulate(
            action.use, action.first && call.begins_gradients, call.iteration);
      case ActionKind::gradient_norm:
        return parameters.measure_gradient(action.block, call.iteration);
      case ActionKind::optimizer_step:
        return parameters.update(action.block, call.iteration, call.loss_scale);
      case ActionKind::copy_parameters:
        return parameters.copy_parameters(action.block);
      default:
        throw Error(Errc::unsupported, "a device's action stands on a host's lane");
    }
  }

  /// Finishes a step that has begun, if that is possible.
  template <class B>
  void abandon(GraphRun<B>& run, ActionId id) {
    auto const& actions = run.program().graph().actions;
    auto const updates = [&](std::size_t i) {
      return actions[i].kind == ActionKind::optimizer_step;
    };
    bool begun = false;
    std::lock_guard const lock(parameters.copies());
    for (std::size_t i = 0; finishes_steps && i < actions.size(); ++i) {
      begun = begun || (i < id.index() && updates(i));
      if (begun && i >= id.index() && updates(i)) {
        parameters.update(actions[i].block, run.call().iteration, run.call().loss_scale);
      }
    }
  }
};

}  // namespace roundpipe
