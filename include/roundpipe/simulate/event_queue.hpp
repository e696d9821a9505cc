// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What is yet to happen in a simulation.

#include <cstddef>
#include <functional>
#include <queue>
#include <vector>

namespace roundpipe::detail {

enum class EventKind {
  ready,     ///< An action may start.
  computed,  ///< A pass has had its own time; copies may have held it up.
  end,       ///< An action is over.
  issued,    ///< An issuer has issued its next action.
};

struct SimulatedEvent {
  double at_s;
  std::size_t number;  ///< Among events at the same time, the oldest goes first.
  EventKind kind;
  std::size_t subject;  ///< The action; for `issued` the issuer.

  friend bool operator>(SimulatedEvent const& a, SimulatedEvent const& b) noexcept {
    return a.at_s != b.at_s ? a.at_s > b.at_s : a.number > b.number;
  }
};

/// Events in the order of their times, but for ends of copies, which \ref CopyEngines know.
class EventQueue {
 public:
  void push(double at_s, EventKind kind, std::size_t subject) {
    events_.push({at_s, count_++, kind, subject});
  }
  [[nodiscard]] bool empty() const noexcept { return events_.empty(); }
  [[nodiscard]] double next_s() const { return events_.top().at_s; }
  SimulatedEvent pop() {
    auto const event = events_.top();
    events_.pop();
    return event;
  }

 private:
  std::priority_queue<SimulatedEvent, std::vector<SimulatedEvent>, std::greater<>> events_;
  std::size_t count_ = 0;
};

}  // namespace roundpipe::detail
