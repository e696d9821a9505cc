// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The copies of a simulation: one engine a device and direction, on links that are shared.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// Each engine makes one copy at a time, in the order in which they were added, each to its end: a
/// latency, then its bytes at the rate that \ref LinkSharing gives at each moment.
class CopyEngines {
 public:
  CopyEngines(LinkModel const& link, std::size_t devices)
      : sharing_(link, devices), engines_(2 * devices) {}

  /// Adds the copy of \p action on \p lane at \p now_s, no earlier than what was advanced to.
  void add(std::size_t action, Lane const& lane, Bytes bytes, double now_s) {
    auto const down =
        lane.kind == LaneKind::activation_down || lane.kind == LaneKind::gradient_down;
    auto& engine = engines_[2 * lane.device.index() + (down ? 1 : 0)];
    move_to(now_s);
    engine.queue.push_back({action, static_cast<double>(bytes)});
    if (engine.queue.size() == 1) {
      begin(engine);
    }
  }

  /// When the next copy ends its latency or its bytes; nothing while there is none.
  [[nodiscard]] std::optional<double> next_event_s() const {
    std::optional<double> next;
    for (auto const& engine : engines_) {
      if (!engine.queue.empty()) {
        auto const at_s = engine.event_s;
        next = std::min(next.value_or(at_s), at_s);
      }
    }
    return next;
  }

  /// Goes on to \p now_s, the time of the next event. \returns the actions that end then.
  [[nodiscard]] std::vector<std::size_t> advance(double now_s) {
    move_to(now_s);
    std::vector<std::size_t> ended;
    for (auto& engine : engines_) {
      if (engine.queue.empty() || engine.event_s > now_s) {
        continue;
      }
      if (!engine.flows && engine.queue.front().bytes_left > 0) {
        engine.flows = true;
      } else {
        ended.push_back(engine.queue.front().action);
        engine.queue.pop_front();
        engine.flows = false;
        if (!engine.queue.empty()) {
          begin(engine);
        }
      }
    }
    share();
    return ended;
  }

 private:
  struct Copy {
    std::size_t action;
    double bytes_left;
  };
  struct Engine {
    std::deque<Copy> queue;  ///< The first one is being made.
    bool flows = false;      ///< Its latency is over.
    double rate = 0;         ///< Bytes per second while it flows.
    double event_s = 0;      ///< When its latency or its bytes end, at the present rate.
  };

  void begin(Engine& engine) {
    engine.flows = false;
    engine.event_s = now_s_ + sharing_.link().latency_s;
  }

  void move_to(double now_s) {
    for (auto& engine : engines_) {
      if (engine.flows && engine.rate != LinkSharing::unlimited) {
        auto& left = engine.queue.front().bytes_left;
        left = std::max(0.0, left - engine.rate * (now_s - now_s_));
      }
    }
    now_s_ = now_s;
  }

  /// Gives every copy under way its rate.
  void share() {
    std::vector<CopyFlow> flows;
    std::vector<Engine*> flowing;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if (engines_[i].flows) {
        flows.push_back({i / 2, i % 2 == 0 ? CopyDirection::up : CopyDirection::down});
        flowing.push_back(&engines_[i]);
      }
    }
    auto const rates = sharing_.rates(flows);
    for (std::size_t i = 0; i < flowing.size(); ++i) {
      auto& engine = *flowing[i];
      if (engine.rate != rates[i] || engine.event_s <= now_s_) {  // else its end stays as it was
        engine.rate = rates[i];
        engine.event_s = now_s_ + engine.queue.front().bytes_left / engine.rate;
      }
    }
  }

  LinkSharing sharing_;
  std::vector<Engine> engines_;  // by device, then up and down
  double now_s_ = 0;
};

}  // namespace roundpipe::detail
