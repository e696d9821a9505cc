// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What earlier runs did to blocks and rings, as far as later runs must wait for it.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/plan/action_graph.hpp>
#include <roundpipe/runtime/graph_run.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace roundpipe {

/// Resolves the waits of a run for earlier runs, and remembers the run for later ones. It belongs
/// to the controller's thread.
template <Backend B>
class RunHistory {
 public:
  /// Completes \p run, which has begun: its ring bases and its tickets, each of which pins its run.
  void resolve(GraphRun<B>& run) {
    auto const& graph = run.program().graph();
    for (auto const& [ring, use] : graph.rings) {
      run.set_ring_base(ring, rings_[physical(run, ring)].acquisitions);
    }
    for (std::size_t i = 0; i < graph.actions.size(); ++i) {
      auto const& action = graph.actions[i];
      for (auto const& buffer : action.ring_waits) {
        auto const& past = rings_[physical(run, buffer.ring)].users;
        // The entry's former content is the acquisition `count` before this one.
        auto const back = graph.rings.at(buffer.ring).count - buffer.sequence;
        if (back <= past.size()) {
          for (auto const& user : past[past.size() - back]) {
            add_ticket(run, ActionId(i), user);
          }
        }
      }
      for (auto const& event : action.block_waits) {
        for (auto const& happened : events_[event]) {
          add_ticket(run, ActionId(i), happened);
        }
      }
    }
  }

  /// Adds what \p run does. Its host bases are set.
  void remember(GraphRun<B>& run) {
    auto const& graph = run.program().graph();
    for (auto const& [ring, use] : graph.rings) {
      auto& past = rings_[physical(run, ring)];
      past.acquisitions += use.acquisitions;
      auto const skipped = use.users.size() - std::min(use.users.size(), use.count);
      for (std::size_t i = skipped; i < use.users.size(); ++i) {
        auto& users = past.users.emplace_back();
        for (auto const user : use.users[i]) {
          users.push_back(make_past(run, user));
        }
        if (past.users.size() > use.count) {
          past.users.pop_front();
        }
      }
    }
    for (auto const& [event, ids] : graph.block_events) {
      auto& happened = events_[event];
      std::erase_if(happened, [](PastAction const& past) { return past.is_over(); });
      for (auto const id : ids) {
        happened.push_back(make_past(run, id));
      }
    }
  }

 private:
  struct PastAction {
    GraphRun<B>* run;
    std::uint64_t generation;
    ActionId action;
    Lane lane;               // with the physical device
    std::uint64_t sequence;  // of the host's lanes

    [[nodiscard]] bool is_over() const {
      return run->generation() != generation || !run->in_flight();
    }
  };
  struct PastRing {
    std::size_t acquisitions = 0;
    std::deque<std::vector<PastAction>> users;  // of the latest acquisitions, oldest first
  };

  [[nodiscard]] static Ring physical(GraphRun<B> const& run, Ring ring) {
    if (ring.device.valid()) {
      ring.device = run.physical(ring.device);
    }
    return ring;
  }

  [[nodiscard]] static PastAction make_past(GraphRun<B>& run, ActionId id) {
    auto lane = run.program()[id].lane;
    std::uint64_t sequence = 0;
    if (lane.device.valid()) {
      lane.device = run.physical(lane.device);
    } else {
      sequence = run.host_sequence(id);
    }
    return {&run, run.generation(), id, lane, sequence};
  }

  static void add_ticket(GraphRun<B>& run, ActionId id, PastAction const& past) {
    auto lane = run.program()[id].lane;
    if (lane.device.valid()) {
      lane.device = run.physical(lane.device);
    }
    if (past.is_over() || lane == past.lane) {
      return;
    }
    if (past.lane.device.valid()) {
      past.run->pin();
      run.add_external(id, {past.run, past.action, past.lane.kind, 0});
    } else {
      run.add_external(id, {nullptr, past.action, past.lane.kind, past.sequence});
    }
  }

  std::map<Ring, PastRing> rings_;  // with physical devices
  std::map<BlockEvent, std::vector<PastAction>> events_;
};

}  // namespace roundpipe
