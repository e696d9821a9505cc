// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The effects of earlier graphs on blocks, rings and lanes that later graphs must wait for.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe {

/// The place of a graph in the issued sequence of graphs.
struct GraphBinding {
  std::size_t first_device = 0;  ///< g0: the device that acts as device 0.
  std::size_t devices = 1;       ///< Of the machine.
  std::size_t iteration = 1;     ///< The number of steps issued before, plus 1.

  [[nodiscard]] DeviceId physical(DeviceId relative) const noexcept {
    return relative.valid() ? DeviceId((relative.index() + first_device) % devices) : relative;
  }
  [[nodiscard]] Lane physical(Lane lane) const noexcept {
    return {lane.kind, physical(lane.device)};
  }
  [[nodiscard]] Ring physical(Ring ring) const noexcept {
    ring.device = physical(ring.device);
    return ring;
  }
};

/// Resolves the waits of a graph for earlier graphs. The pipeline follows this resolution, and
/// `verify` checks it.
///
/// \tparam Run Names an issued graph; copyable.
template <class Run>
class GraphHistory {
 public:
  struct PastAction {
    Run run;
    ActionId action;
    Lane lane;  ///< With the physical device.
    std::size_t iteration = 1;
  };

  /// The number of the next entry that a graph will acquire of \p ring, a physical ring.
  [[nodiscard]] std::size_t ring_base(Ring const& ring) const {
    auto const found = rings_.find(ring);
    return found == rings_.end() ? 0 : found->second.acquisitions;
  }

  /// Calls `f(action, past)` for every action of \p graph and every earlier action that it waits
  /// for, except those on its own lane.
  template <class F>
  void resolve(ActionGraph const& graph, GraphBinding const& place, F&& f) const {
    for (std::size_t i = 0; i < graph.actions.size(); ++i) {
      resolve(graph, place, graph.actions[i], [&](auto const& past) { f(ActionId(i), past); });
    }
  }
  /// The same for one \p action of \p graph: `f(past)`.
  template <class F>
  void resolve(ActionGraph const& graph,
               GraphBinding const& place,
               Action const& action,
               F&& f) const {
    auto const lane = place.physical(action.lane);
    auto const wait_for = [&](PastAction const& past) {
      if (past.lane != lane) {
        f(past);
      }
    };
    for (auto const& buffer : action.ring_waits) {
      // The acquisition `count` before this one holds the entry's former content.
      auto const back = graph.rings.at(buffer.ring).count - buffer.sequence;
      auto const found = rings_.find(place.physical(buffer.ring));
      if (found != rings_.end() && back <= found->second.users.size()) {
        auto const& users = found->second.users;
        for (auto const& past : users[users.size() - back]) {
          wait_for(past);
        }
      }
    }
    for (auto const& event : action.block_waits) {
      if (auto const found = events_.find({event.block, event.kind}); found != events_.end()) {
        for_each_latest(found->second, place.iteration, event.age, wait_for);
      }
    }
    for (auto const& wait : action.lane_waits) {
      auto const found = slots_.find({wait.kind, lane.device});
      auto const* const past = found == slots_.end() ? nullptr : found->second.find(wait.back);
      if (past != nullptr) {
        wait_for(*past);
      }
    }
  }

  /// Records the actions of \p graph.
  void remember(ActionGraph const& graph, GraphBinding const& place, Run run) {
    auto const past = [&](ActionId id) {
      auto const lane = place.physical(graph.actions[id.index()].lane);
      return PastAction{run, id, lane, place.iteration};
    };
    for (auto const& [ring, use] : graph.rings) {
      auto& known = rings_[place.physical(ring)];
      known.acquisitions += use.acquisitions;
      for (std::size_t i = use.users.size() - std::min(use.users.size(), use.count);
           i < use.users.size();
           ++i) {
        auto& users = known.users.emplace_back();
        for (auto const user : use.users[i]) {
          users.push_back(past(user));
        }
        if (known.users.size() > use.count) {
          known.users.pop_front();
        }
      }
    }
    for (auto const& [event, ids] : graph.block_events) {
      auto& happened = events_[{event.block, event.kind}];
      for (auto const id : ids) {
        remember_event(happened, past(id));
      }
    }
    for (std::size_t i = 0; i < graph.actions.size(); ++i) {
      auto const& action = graph.actions[i];
      if (action.lane.kind == LaneKind::activation_up) {
        slots_[place.physical(action.lane)].add(action, past(ActionId(i)), run);
      }
    }
  }

 private:
  struct PastRing {
    std::size_t acquisitions = 0;
    std::deque<std::vector<PastAction>> users;  // of the latest acquisitions, oldest first
  };

  /// The last slot of a lane: the last action of each micro-batch.
  struct PastSlot {
    SlotId slot;
    MicroBatchId micro_batch;
    std::optional<PastAction> before;  // the last action of the slot before
    std::vector<std::pair<MicroBatchId, PastAction>> latest;

    /// The last action when the last \p back micro-batches, counted from the last one with an
    /// action, are left out; null when there is none.
    [[nodiscard]] PastAction const* find(std::size_t back) const {
      auto const found = std::find_if(latest.rbegin(), latest.rend(), [&](auto const& each) {
        return each.first.index() + back <= micro_batch.index();
      });
      if (found != latest.rend()) {
        return &found->second;
      }
      return before ? &*before : nullptr;
    }

    void add(Action const& action, PastAction past, Run const& run) {
      auto const goes_on =
          !latest.empty() && latest.back().second.run == run && slot == action.slot;
      if (!goes_on && !latest.empty()) {
        before = latest.back().second;
        latest.clear();
      }
      if (goes_on && micro_batch == action.micro_batch) {
        latest.back().second = past;
      } else {
        latest.emplace_back(action.micro_batch, past);
      }
      slot = action.slot;
      micro_batch = action.micro_batch;
    }
  };

  /// Calls \p f with the latest action of \p happened on each lane that is \p age iterations old.
  template <class F>
  static void for_each_latest(std::vector<PastAction> const& happened,
                              std::size_t iteration,
                              std::size_t age,
                              F&& f) {
    for (auto past = happened.begin(); past != happened.end(); ++past) {
      auto const counts = [&](PastAction const& other) {
        return other.iteration + age <= iteration;
      };
      auto const is_later = [&](PastAction const& other) {
        return other.lane == past->lane && counts(other);
      };
      if (counts(*past) && std::none_of(past + 1, happened.end(), is_later)) {
        f(*past);
      }
    }
  }

  /// Of the actions on one lane, keeps the latest of each iteration that an event's age can
  /// distinguish.
  static void remember_event(std::vector<PastAction>& happened, PastAction const& past) {
    constexpr std::size_t oldest_age = 2;
    bool has_older = false;
    auto const implied = [&](PastAction const& other) {
      if (other.lane != past.lane) {
        return false;
      }
      // Of the actions that are old enough for any age, only the latest counts.
      auto const old = other.iteration + oldest_age <= past.iteration;
      return other.iteration == past.iteration || (old && std::exchange(has_older, true));
    };
    for (auto i = happened.size(); i-- > 0;) {
      if (implied(happened[i])) {
        happened.erase(happened.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    happened.push_back(past);
  }

  std::map<Ring, PastRing> rings_;  // physical
  std::map<std::pair<BlockId, BlockEventKind>, std::vector<PastAction>> events_;
  std::map<Lane, PastSlot> slots_;  // physical
};

}  // namespace roundpipe
