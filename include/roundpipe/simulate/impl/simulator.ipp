// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/issuer.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/simulate/action_times.hpp>
#include <roundpipe/simulate/copy_engines.hpp>
#include <roundpipe/simulate/event_queue.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <roundpipe/simulate/successors.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// One run of a sequence. A lane takes its actions in issue order, each after all its waits.
class Simulator {
 public:
  Simulator(GraphSequence const& sequence, SimulationOptions const& options, bool with_accesses)
      : options_(options),
        devices_(sequence.devices()),
        actions_(sequence.unroll(with_accesses)),
        times_(options.compute, devices_),
        engines_(options.link, devices_),
        successors_(actions_),
        states_(actions_.size()),
        issuing_(issuers_of(devices_)) {
    require(options.hand_over_s >= 0 && options.dispatch_s >= 0,
            Errc::invalid_argument,
            "the times of a simulation must not be negative");
    prepare();
  }

  /// Runs until all actions are over for which `counts(action)` holds.
  /// \throws Error (invalid_argument) when some of them wait forever.
  template <class F>
  void run(F const& counts) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      states_[i].counts = counts(actions_[i]);
      running_ += states_[i].counts ? 1 : 0;
    }
    issue_graphs(0);
    while (running_ > 0) {
      auto const copy_end_s = engines_.next_event_s();
      if (!events_.empty() && (!copy_end_s || events_.next_s() <= *copy_end_s)) {
        handle(events_.pop());
      } else if (copy_end_s) {
        for (auto const action : engines_.advance(*copy_end_s)) {
          end(action, *copy_end_s);
        }
      } else {
        throw Error(Errc::invalid_argument,
                    "a simulated sequence never ends: some of its actions wait forever");
      }
    }
  }

  [[nodiscard]] Simulation record() && {
    auto entries = timeline();
    return {std::move(actions_), std::move(entries)};
  }

  /// The end of the last action that counts of the graphs before \p graph; 0 without any.
  [[nodiscard]] double end_before(std::size_t graph) const {
    double end_s = 0;
    for (std::size_t i = 0; i < actions_.size() && actions_[i].graph < graph; ++i) {
      end_s = states_[i].counts ? std::max(end_s, states_[i].end_s) : end_s;
    }
    return end_s;
  }

 private:
  struct State {
    std::size_t missing = 1;  ///< The events that are still missing: issue, lane, waits.
    double ready_s = 0;       ///< The earliest possible start.
    double start_s = 0;
    double end_s = 0;
    double copied_bytes = 0;  ///< By its device when compute starts.
    bool hands_over = false;  ///< Waits for a boundary from another device.
    bool counts = false;      ///< The run goes on until it is over.
  };
  /// What an issuer does.
  struct Issuing {
    std::vector<std::size_t> actions;
    std::size_t next = 0;
    bool busy = false;
  };

  /// How many of the host's lanes the action keeps busy.
  [[nodiscard]] int host_lanes(std::size_t i) const noexcept {
    return !actions_[i].lane.device.valid() && states_[i].end_s > states_[i].start_s ? 1 : 0;
  }
  [[nodiscard]] bool is_boundary_up(std::size_t i) const noexcept {
    auto const kind = actions_[i].action->kind;
    return kind == ActionKind::upload_activation || kind == ActionKind::upload_gradient;
  }
  [[nodiscard]] bool brings_loss(std::size_t i) const {
    return actions_[i].lane.kind == LaneKind::activation_down &&
           find_buffer(*actions_[i].action, BufferKind::loss) != nullptr;
  }

  void prepare() {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      auto const& action = actions_[i];
      auto& state = states_[i];
      for (auto const wait : action.waits) {
        ++state.missing;
        state.hands_over =
            state.hands_over || (is_boundary_up(i) && actions_[wait].lane.device.valid() &&
                                 actions_[wait].lane.device != action.lane.device);
      }
      if (auto const next = successors_.next_on_lane(i)) {
        ++states_[*next].missing;
      }
      if (action.graph >= graphs_.size()) {
        graphs_.resize(action.graph + 1, {i, i, 0});
      }
      graphs_[action.graph].end = i + 1;
      graphs_[action.graph].losses += brings_loss(i) ? 1 : 0;
    }
  }

  /// Issues the graphs that are due.
  void issue_graphs(double now_s) {
    while (issued_graphs_ < graphs_.size() && (losses_before_ == 0 || !options_.waits_for_losses)) {
      auto const& graph = graphs_[issued_graphs_++];
      losses_before_ += graph.losses;
      for (auto i = graph.first; i < graph.end; ++i) {
        if (auto const& lane = actions_[i].lane; lane.device.valid()) {
          issuing_[Issuer::of(lane).index()].actions.push_back(i);
        } else {
          satisfy(i, now_s);
        }
      }
    }
    for (std::size_t issuer = 0; issuer < issuing_.size(); ++issuer) {
      issue_actions(issuer, now_s);
    }
  }

  void issue_actions(std::size_t issuer, double now_s) {
    auto& thread = issuing_[issuer];
    while (!thread.busy && thread.next < thread.actions.size()) {
      if (options_.dispatch_s > 0) {
        thread.busy = true;
        events_.push(now_s + options_.dispatch_s, EventKind::issued, issuer);
      } else {
        satisfy(thread.actions[thread.next++], now_s);
      }
    }
  }

  void handle(SimulatedEvent const& event) {
    switch (event.kind) {
      case EventKind::issued: {
        auto& thread = issuing_[event.subject];
        thread.busy = false;
        satisfy(thread.actions[thread.next++], event.at_s);
        return issue_actions(event.subject, event.at_s);
      }
      case EventKind::ready:
        return start(event.subject, event.at_s);
      case EventKind::computed:
        return events_.push(
            event.at_s + copies_take_s(event.subject, event.at_s), EventKind::end, event.subject);
      case EventKind::end:
        return end(event.subject, event.at_s);
    }
  }

  /// One of the events that action \p i waits for has happened.
  void satisfy(std::size_t i, double now_s) {
    auto& state = states_[i];
    state.ready_s = std::max(state.ready_s, now_s);
    if (--state.missing == 0) {
      events_.push(state.ready_s, EventKind::ready, i);
    }
  }

  void start(std::size_t i, double now_s) {
    auto& state = states_[i];
    state.start_s = now_s;
    auto const& lane = actions_[i].lane;
    if (lane.device.valid() && lane.kind != LaneKind::compute) {
      return engines_.add(i, lane, actions_[i].action->bytes, now_s);
    }
    state.end_s = now_s + times_(actions_[i], now_s);
    engines_.add_work(host_lanes(i), now_s);
    auto const shares_memory =
        lane.device.valid() && options_.compute.device_memory_bytes_per_second > 0;
    if (shares_memory) {
      state.copied_bytes = engines_.copied_bytes(lane.device, now_s);
    }
    events_.push(state.end_s, shares_memory ? EventKind::computed : EventKind::end, i);
  }

  /// What the copies since the start of \p i have taken from compute. Those of that time itself are
  /// too few to count.
  [[nodiscard]] double copies_take_s(std::size_t i, double now_s) {
    auto const bytes =
        engines_.copied_bytes(actions_[i].lane.device, now_s) - states_[i].copied_bytes;
    return bytes / options_.compute.device_memory_bytes_per_second;
  }

  void end(std::size_t i, double now_s) {
    auto& state = states_[i];
    running_ -= state.counts ? 1 : 0;
    state.end_s = now_s;
    engines_.add_work(-host_lanes(i), now_s);
    if (state.hands_over) {
      state.start_s -= options_.hand_over_s;  // the boundary was in transit
    }
    for (auto const follower : successors_.waiting_for(i)) {
      auto const device = actions_[i].lane.device;
      auto const other = device.valid() && device != actions_[follower].lane.device;
      satisfy(follower, is_boundary_up(follower) && other ? now_s + options_.hand_over_s : now_s);
    }
    if (auto const next = successors_.next_on_lane(i)) {
      satisfy(*next, now_s);
    }
    if (brings_loss(i) && --losses_before_ == 0) {
      issue_graphs(now_s);
    }
  }

  [[nodiscard]] Timeline timeline() const {
    Timeline result{devices_, {}, {}};
    result.entries.reserve(actions_.size());
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      auto const& done = actions_[i];
      result.entries.push_back(timeline_entry(
          *done.action, done.graph, done.id, done.lane, states_[i].start_s, states_[i].end_s));
      for (auto const wait : done.waits) {
        // A boundary is in transit before all waits of its reader have ended.
        if (states_[wait].end_s <= states_[i].start_s) {
          result.flows.push_back({wait, i});
        }
      }
    }
    return result;
  }

  /// The actions of a graph, and how many of them bring a loss.
  struct Graph {
    std::size_t first;
    std::size_t end;
    std::size_t losses;
  };

  SimulationOptions const& options_;
  std::size_t devices_;
  UnrolledActions actions_;
  ActionTimes times_;
  CopyEngines engines_;
  Successors successors_;
  std::vector<State> states_;  // by action
  std::vector<Graph> graphs_;
  std::vector<Issuing> issuing_;  // by issuer
  EventQueue events_;
  std::size_t issued_graphs_ = 0;
  std::size_t losses_before_ = 0;  // losses of issued graphs that are still missing
  std::size_t running_ = 0;        // actions that count and are not over
};

}  // namespace detail

ROUNDPIPE_INLINE Simulation simulate(GraphSequence const& sequence,
                                     SimulationOptions const& options) {
  detail::Simulator simulator(sequence, options, true);
  simulator.run([](UnrolledAction const&) { return true; });
  return std::move(simulator).record();
}

ROUNDPIPE_INLINE double simulate_compute_seconds(GraphSequence const& sequence,
                                                 std::size_t first,
                                                 std::size_t end,
                                                 SimulationOptions const& options) {
  detail::Simulator simulator(sequence, options, false);
  simulator.run([&](UnrolledAction const& action) {
    return action.lane.kind == LaneKind::compute && action.graph < end;
  });
  return simulator.end_before(end) - simulator.end_before(first);
}

}  // namespace roundpipe
