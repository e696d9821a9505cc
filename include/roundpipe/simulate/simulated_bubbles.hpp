// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long simulated iterations take, and how much of it devices idle, by cause.

#include <roundpipe/plan/action_graph.hpp>
#include <roundpipe/plan/bubble_meter.hpp>
#include <roundpipe/plan/bubbles.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// Busy and idle time of a simulation's devices. With more than two iterations both are those of
/// the steady state: each device's from its finish of the second iteration to its finish of the
/// last one. Else they are those of the makespan.
struct SimulatedBubbles {
  std::size_t iterations = 0;  ///< That were simulated.
  double makespan_s = 0;       ///< From the start to the end of all compute.
  double iteration_s = 0;      ///< Of one iteration, on the average.
  double busy_s = 0;           ///< Of all devices together.
  Bubbles bubbles;             ///< Likewise: all idle time.

  /// The share of idle time, 0 to 1.
  [[nodiscard]] double ratio() const noexcept {
    auto const idle_s = bubbles.total();
    return idle_s > 0 ? idle_s / (idle_s + busy_s) : 0;
  }
};

namespace detail {

/// The actions of one graph of a simulation.
struct SimulatedGraph {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t iteration = 0;  ///< Steps before it.
};

[[nodiscard]] inline std::vector<SimulatedGraph> graphs_of(Simulation const& simulation) {
  std::vector<SimulatedGraph> graphs;
  std::size_t steps = 0;
  auto const& actions = simulation.actions;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (i == 0 || actions[i].graph != actions[i - 1].graph) {
      steps += i > 0 && actions[i - 1].source->role == GraphRole::step ? 1 : 0;
      graphs.push_back({i, 0, steps});
    }
    ++graphs.back().count;
  }
  return graphs;
}

/// What action \p i waited for last, if that was an action of an earlier graph.
[[nodiscard]] inline BubbleMeter::External external_of(Simulation const& simulation,
                                                       std::size_t i) {
  auto const& actions = simulation.actions;
  auto result = BubbleMeter::External::none;
  double latest_s = 0;
  for (auto const wait : actions[i].waits) {
    auto const end_s = simulation.timeline.entries[wait].end_s;
    if (end_s > latest_s) {
      latest_s = end_s;
      result = actions[wait].graph == actions[i].graph ? BubbleMeter::External::none
               : actions[wait].lane.device.valid()     ? BubbleMeter::External::device
                                                       : BubbleMeter::External::host;
    }
  }
  return result;
}

}  // namespace detail

/// Accounts for all of \p simulation.
[[nodiscard]] inline SimulatedBubbles account_bubbles(Simulation const& simulation) {
  constexpr std::size_t warm_up = 2;  // iterations before the steady state
  auto const graphs = detail::graphs_of(simulation);
  auto const& timeline = simulation.timeline;
  SimulatedBubbles result;
  result.iterations = graphs.empty() ? 0 : graphs.back().iteration + 1;
  auto const is_steady = result.iterations > warm_up;

  BubbleMeter meter(timeline.devices);
  meter.begin(0);
  double warm_s = 0;
  bool warm = false;
  for (auto const& graph : graphs) {
    if (is_steady && !warm && graph.iteration == warm_up) {
      warm = true;
      warm_s = result.makespan_s;
      result.busy_s = 0;
      meter.forget();
    }
    std::span const entries(timeline.entries.data() + graph.first, graph.count);
    meter.add(*simulation.actions[graph.first].source, entries, [&](ActionId id) {
      return detail::external_of(simulation, graph.first + id.index());
    });
    for (auto const& entry : entries) {
      if (entry.lane.kind == LaneKind::compute) {
        result.busy_s += entry.seconds();
        result.makespan_s = std::max(result.makespan_s, entry.end_s);
      }
    }
  }
  if (!is_steady) {
    meter.finish(result.makespan_s);
  }
  result.bubbles = meter.bubbles();
  auto const counted = result.iterations - (is_steady ? warm_up : 0);
  result.iteration_s =
      (result.makespan_s - warm_s) / static_cast<double>(std::max<std::size_t>(1, counted));
  return result;
}

}  // namespace roundpipe
