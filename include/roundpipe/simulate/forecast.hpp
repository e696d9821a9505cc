// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long a training call takes in the steady state, lane by lane, from costs and links.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/plan/action_graph.hpp>
#include <roundpipe/plan/cost_model.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <vector>

namespace roundpipe {

/// Rates of each device's link; 0 is unlimited.
struct LinkRates {
  double upload_bytes_per_second = 0;
  double download_bytes_per_second = 0;
  double latency_s = 0;  ///< Of a copy.
};

namespace detail {

/// The time of a device's action.
[[nodiscard]] inline double action_seconds(Action const& action,
                                           CostModel const& costs,
                                           LinkRates const& link) {
  auto const copy = [&](double rate) {
    return link.latency_s + (rate > 0 ? static_cast<double>(action.bytes) / rate : 0);
  };
  auto const layer = [&]() -> LayerCost const& {
    require(action.layer.valid() && action.layer.index() < costs.layers().size(),
            Errc::invalid_argument,
            "a forecast was asked for with costs of fewer layers than the graph has");
    return costs.layers()[action.layer.index()];
  };
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::recompute:
      return layer().forward_s;
    case ActionKind::backward:
      return layer().backward_s;
    case ActionKind::upload_parameters:
    case ActionKind::upload_activation:
    case ActionKind::upload_gradient:
      return copy(link.upload_bytes_per_second);
    case ActionKind::download_activation:
    case ActionKind::download_gradients:
      return copy(link.download_bytes_per_second);
    default:
      return 0;
  }
}

/// When a copy engine is busy: it makes one copy at a time, each as early as it can.
class CopyEngine {
 public:
  /// Takes the first free time of \p seconds from \p ready_s on. \returns when that begins.
  [[nodiscard]] double take(double ready_s, double seconds) {
    if (seconds <= 0) {
      return ready_s;
    }
    auto start_s = ready_s;
    auto next = busy_.upper_bound(ready_s);
    if (next != busy_.begin()) {
      start_s = std::max(start_s, std::prev(next)->second);
    }
    for (; next != busy_.end() && next->first < start_s + seconds; ++next) {
      start_s = std::max(start_s, next->second);
    }
    busy_.emplace(start_s, start_s + seconds);
    return start_s;
  }

 private:
  std::map<double, double> busy_;  // from, until
};

/// The copy engine that \p kind's copies go through, as the kind of one of its two lanes; of other
/// lanes the kind itself.
[[nodiscard]] constexpr LaneKind engine_of(LaneKind kind) noexcept {
  return kind == LaneKind::parameter_up    ? LaneKind::activation_up
         : kind == LaneKind::gradient_down ? LaneKind::activation_down
                                           : kind;
}

}  // namespace detail

/// The seconds of one of many training calls in a row: each lane runs its actions in issue order,
/// each action when its waits of the same graph are over; the two lanes of a direction share one
/// copy engine; devices rotate as the graph says. The host's work takes no time: it is a forecast
/// of a pipeline whose optimizer is hidden. Calls are posted early enough never to be waited for.
/// \throws Error (invalid_argument) when \p costs lacks a layer.
[[nodiscard]] inline double forecast_call_seconds(ActionGraph const& graph,
                                                  CostModel const& costs,
                                                  LinkRates const& link = {}) {
  constexpr std::size_t warm_up = 4;
  constexpr std::size_t measured = 8;
  std::map<Lane, double> free_s;               // by physical lane
  std::map<Lane, detail::CopyEngine> engines;  // likewise
  std::vector<double> end_s(graph.actions.size());
  std::size_t first_device = 0;
  auto const latest_compute_s = [&] {
    double latest = 0;
    for (auto const& [lane, at] : free_s) {
      latest = lane.kind == LaneKind::compute ? std::max(latest, at) : latest;
    }
    return latest;
  };
  double warm_s = 0;
  for (std::size_t call = 0; call < warm_up + measured; ++call) {
    for (std::size_t i = 0; i < graph.actions.size(); ++i) {
      auto const& action = graph.actions[i];
      auto lane = action.lane;
      if (lane.device.valid()) {
        lane.device = DeviceId((first_device + lane.device.index()) % graph.devices);
      }
      auto start_s = free_s[lane];
      for (auto const wait : action.waits) {
        start_s = std::max(start_s, end_s[wait.index()]);
      }
      auto const seconds = detail::action_seconds(action, costs, link);
      auto const engine = detail::engine_of(lane.kind);
      if (engine == LaneKind::activation_up || engine == LaneKind::activation_down) {
        start_s = engines[{engine, lane.device}].take(start_s, seconds);
      }
      end_s[i] = start_s + seconds;
      free_s[lane] = end_s[i];
    }
    first_device = (first_device + graph.advance) % graph.devices;
    if (call + 1 == warm_up) {
      warm_s = latest_compute_s();
    }
  }
  return (latest_compute_s() - warm_s) / measured;
}

}  // namespace roundpipe
