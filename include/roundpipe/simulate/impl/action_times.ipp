// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/pass_actions.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/simulate/action_times.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE ActionTimes::ActionTimes(ComputeCosts costs, std::size_t devices)
    : costs_(std::move(costs)) {
  require(costs_.device_speeds.empty() || costs_.device_speeds.size() == devices,
          Errc::invalid_argument,
          "device speeds must be given for every device or for none");
  for (auto const speed : costs_.device_speeds) {
    require(speed > 0, Errc::invalid_argument, "a device's speed must be greater than 0");
  }
}

ROUNDPIPE_INLINE double ActionTimes::operator()(UnrolledAction const& unrolled, double now_s) {
  auto const& action = *unrolled.action;
  if (unrolled.lane.kind == LaneKind::compute) {
    auto const device = unrolled.lane.device.index();
    auto const speed = costs_.device_speeds.empty() ? 1 : costs_.device_speeds[device];
    return pass_seconds(unrolled) / speed;
  }
  if (action.kind == ActionKind::optimizer_step && !costs_.step_s.empty()) {
    require(action.block.index() < costs_.step_s.size(),
            Errc::invalid_argument,
            "the costs of a simulation lack the optimizer step of a block");
    return costs_.step_s[action.block.index()];
  }
  auto const at_rate = [](Bytes bytes, double bytes_per_second) {
    return bytes_per_second > 0 ? static_cast<double>(bytes) / bytes_per_second : 0;
  };
  auto const seconds = at_rate(action.bytes, costs_.host_bytes_per_second);
  if (action.kind != ActionKind::reduce_gradient && action.kind != ActionKind::gather_weights) {
    return seconds;
  }
  network_free_s_ =
      std::max(network_free_s_, now_s) + at_rate(action.received, costs_.network_bytes_per_second);
  return seconds + (network_free_s_ - now_s) + costs_.network_latency_s;
}

ROUNDPIPE_INLINE double ActionTimes::pass_seconds(UnrolledAction const& unrolled) {
  auto const& action = *unrolled.action;
  require(action.layer.valid() && action.layer.index() < costs_.layers.size(),
          Errc::invalid_argument,
          "the costs of a simulation lack a layer of the graph");
  auto const& layer = costs_.layers[action.layer.index()];
  if (action.kind == ActionKind::recompute && !action.hands_on_output) {
    return layer.replaying_s(action.save_level);
  }
  auto const kind = pass_kind(action.kind,
                              action.kind == ActionKind::recompute && action.save_level == 0 &&
                                  runs_forward(*unrolled.source, action.layer));
  auto const ends_sums = action.last && (action.kind == ActionKind::backward ||
                                         action.kind == ActionKind::weight_gradient);
  return seconds_of(kind, layer) + (ends_sums ? layer.round_s : 0);
}

ROUNDPIPE_INLINE bool ActionTimes::runs_forward(ActionGraph const& graph, LayerId layer) {
  auto const [found, inserted] = forwards_.try_emplace(&graph);
  if (inserted) {
    for (auto const& action : graph.actions) {
      if (action.kind == ActionKind::forward) {
        found->second.insert(action.layer);
      }
    }
  }
  return found->second.contains(layer);
}

}  // namespace roundpipe
