// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/bubble_trace.hpp>
#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/simulate/simulated_bubbles.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// A simulation in the form that \ref trace_bubble reads; all waits of an action are known.
class SimulationView {
 public:
  explicit SimulationView(Simulation const& simulation)
      : simulation_(simulation), before_(simulation.actions.size()) {
    std::map<Lane, std::size_t> latest;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      auto const& lane = simulation.actions[i].lane;
      if (auto const found = latest.find(lane); found != latest.end()) {
        before_[i] = found->second;
      }
      latest[lane] = i;
    }
  }

  [[nodiscard]] TimelineEntry const& entry(std::size_t i) const {
    return simulation_.timeline.entries[i];
  }

  [[nodiscard]] std::optional<std::size_t> before(std::size_t i) const { return before_[i]; }
  [[nodiscard]] std::span<std::size_t const> waits(std::size_t i) const {
    return simulation_.actions[i].waits;
  }

  [[nodiscard]] bool waits_for_place(std::size_t copy, std::size_t user) const {
    auto const& used = simulation_.actions[user].accesses;
    auto const& copied = simulation_.actions[copy].accesses;
    return std::any_of(copied.begin(), copied.end(), [&](Access const& written) {
      return written.writes && written.location.ring.device.valid() &&
             std::any_of(used.begin(), used.end(), [&](Access const& access) {
               return access.location == written.location && access.content < written.content;
             });
    });
  }

  [[nodiscard]] BubbleCause rest(std::size_t /*i*/, bool /*first*/) const {
    return BubbleCause::dispatch;
  }

 private:
  Simulation const& simulation_;
  std::vector<std::optional<std::size_t>> before_;  // on the same lane
};

}  // namespace detail

ROUNDPIPE_INLINE SimulatedBubbles account_bubbles(Simulation const& simulation) {
  constexpr std::size_t warm_up = 2;  // iterations before the steady state
  auto const& actions = simulation.actions;
  auto const is_step = [&](std::size_t i) { return actions[i].source->role == GraphRole::step; };
  auto const ends_graph = [&](std::size_t i) {
    return i + 1 == actions.size() || actions[i + 1].graph != actions[i].graph;
  };
  SimulatedBubbles result;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    result.iterations += ends_graph(i) && (is_step(i) || i + 1 == actions.size()) ? 1 : 0;
  }
  auto const is_steady = result.iterations > warm_up;

  detail::SimulationView const view(simulation);
  std::vector<double> busy_until_s(simulation.timeline.devices, 0.0);
  std::vector<std::size_t> latest_graph(simulation.timeline.devices, actions.size());
  double warm_s = 0;
  std::size_t iteration = 0;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    auto const& entry = view.entry(i);
    if (entry.lane.kind == LaneKind::compute) {
      auto const device = entry.lane.device.index();
      auto const first = std::exchange(latest_graph[device], entry.graph) != entry.graph;
      detail::trace_bubble(view, i, busy_until_s[device], first, result.bubbles);
      busy_until_s[device] = entry.end_s;
      result.busy_s += entry.seconds();
      result.makespan_s = std::max(result.makespan_s, entry.end_s);
    }
    if (is_step(i) && ends_graph(i) && ++iteration == warm_up && is_steady) {
      warm_s = result.makespan_s;
      result.busy_s = 0;
      result.bubbles = {};
    }
  }
  for (auto const busy_s : busy_until_s) {
    if (!is_steady) {
      result.bubbles[BubbleCause::drain] += result.makespan_s - busy_s;
    }
  }
  auto const counted = result.iterations - (is_steady ? warm_up : 0);
  result.iteration_s =
      (result.makespan_s - warm_s) / static_cast<double>(std::max<std::size_t>(1, counted));
  return result;
}

}  // namespace roundpipe
