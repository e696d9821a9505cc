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
#include <roundpipe/plan/graph_sequence.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <vector>

namespace roundpipe {

/// Rates of each device's link, and of the host; 0 is unlimited.
struct LinkRates {
  double upload_bytes_per_second = 0;
  double download_bytes_per_second = 0;
  double latency_s = 0;              ///< Of a copy.
  double host_bytes_per_second = 0;  ///< Of what the actions of the host's lanes go through.
};

namespace detail {

/// The time of an action.
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
      return link.host_bytes_per_second > 0
                 ? static_cast<double>(action.bytes) / link.host_bytes_per_second
                 : 0;
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

/// When the actions of a sequence run: each lane takes its own in issue order, each action when all
/// that it waits for is over; the two lanes of a direction share one copy engine.
class SequenceForecast {
 public:
  SequenceForecast(CostModel const& costs, LinkRates const& link) : costs_(costs), link_(link) {}

  /// The end of the compute of each graph of \p sequence; 0 for those without. A graph is issued
  /// when the losses of all calls before it are there.
  [[nodiscard]] std::vector<double> ends(GraphSequence const& sequence) {
    auto const actions = sequence.unroll();
    std::vector<double> action_ends_s(actions.size());
    std::vector<double> ends_s;
    double losses_s = 0;  // of all calls so far
    double posted_s = 0;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      auto const& action = actions[i];
      if (action.graph >= ends_s.size()) {
        ends_s.resize(action.graph + 1);
        posted_s = losses_s;
      }
      auto start_s = std::max(free_s_[action.lane], posted_s);
      for (auto const wait : action.waits) {
        start_s = std::max(start_s, action_ends_s[wait]);
      }
      auto const seconds = action_seconds(*action.action, costs_, link_);
      auto const engine = engine_of(action.lane.kind);
      if (engine == LaneKind::activation_up || engine == LaneKind::activation_down) {
        start_s = engines_[{engine, action.lane.device}].take(start_s, seconds);
      }
      auto const end_s = start_s + seconds;
      action_ends_s[i] = end_s;
      free_s_[action.lane] = end_s;
      if (action.lane.kind == LaneKind::compute) {
        ends_s[action.graph] = std::max(ends_s[action.graph], end_s);
      } else if (action.lane.kind == LaneKind::activation_down &&
                 find_buffer(*action.action, BufferKind::loss) != nullptr) {
        losses_s = std::max(losses_s, end_s);
      }
    }
    return ends_s;
  }

 private:
  CostModel const& costs_;
  LinkRates const& link_;
  std::map<Lane, double> free_s_;       // by physical lane
  std::map<Lane, CopyEngine> engines_;  // likewise
};

/// The seconds from one turn of \p graphs to the next, of many in a row in \p sequence, which is
/// empty.
[[nodiscard]] inline double steady_seconds(GraphSequence& sequence,
                                           std::initializer_list<ActionGraph const*> graphs,
                                           CostModel const& costs,
                                           LinkRates const& link) {
  constexpr std::size_t warm_up = 4;
  constexpr std::size_t measured = 8;
  for (std::size_t i = 0; i < warm_up + measured; ++i) {
    for (auto const* graph : graphs) {
      sequence.add(*graph);
    }
  }
  auto const ends_s = SequenceForecast(costs, link).ends(sequence);
  auto const end_of = [&](std::size_t call) {
    auto const last = std::min((call + 1) * graphs.size(), ends_s.size());
    return *std::max_element(ends_s.begin(), ends_s.begin() + static_cast<std::ptrdiff_t>(last));
  };
  return (end_of(warm_up + measured - 1) - end_of(warm_up - 1)) / measured;
}

}  // namespace detail

/// The seconds of one of many training calls in a row, without steps between them: lane by lane, in
/// issue order. A call is issued when the losses of the one before are there.
/// \throws Error (invalid_argument) when \p costs lacks a layer.
[[nodiscard]] inline double forecast_call_seconds(ActionGraph const& call,
                                                  CostModel const& costs,
                                                  LinkRates const& link = {}) {
  GraphSequence sequence(call.devices);
  return detail::steady_seconds(sequence, {&call}, costs, link);
}

/// The seconds of one of many iterations in a row, each a \p call and a \p step, with all that
/// later graphs wait for in earlier ones.
/// \throws Error (invalid_argument) when \p costs lacks a layer.
[[nodiscard]] inline double forecast_iteration_seconds(ActionGraph const& call,
                                                       ActionGraph const& step,
                                                       CostModel const& costs,
                                                       LinkRates const& link = {}) {
  GraphSequence sequence(call.devices);
  return detail::steady_seconds(sequence, {&call, &step}, costs, link);
}

}  // namespace roundpipe
