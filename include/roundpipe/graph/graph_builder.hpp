// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Appends actions to a graph and derives their waits from the buffers that they use.

#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace roundpipe {

/// Builds an \ref ActionGraph: one action after another, in issue order.
///
/// A ring entry is acquired by its first writer, which waits for all users of the entry's former
/// content; whoever reads or writes an entry is a user.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::size_t devices) { graph_.devices = devices; }

  /// Appends \p action and returns its id. Its waits may be given in any order and more than once:
  /// of several on one lane the latest stays, and those on its own lane are implied.
  ActionId add(Action action) {
    auto const id = ActionId(graph_.actions.size());
    for (auto const* list : {&action.reads, &action.writes}) {
      for (auto const& buffer : *list) {
        if (is_ring(buffer.ring.kind)) {
          graph_.rings.at(buffer.ring).users.at(buffer.sequence).push_back(id);
        }
      }
    }
    keep_latest_waits(action);
    graph_.actions.push_back(std::move(action));
    return id;
  }

  /// The next entry of \p ring, which has \p count entries; \p action, its first writer, gets the
  /// waits that this takes.
  Buffer acquire(Ring const& ring, std::size_t count, Action& action) {
    auto& use = graph_.rings[ring];
    use.count = count;
    auto const sequence = use.acquisitions++;
    use.users.emplace_back();
    Buffer const buffer{ring, sequence};
    if (sequence < count) {
      action.ring_waits.push_back(buffer);
    } else {
      auto const& users = use.users[sequence - count];
      action.waits.insert(action.waits.end(), users.begin(), users.end());
    }
    return buffer;
  }

  /// Actions of this graph that touch \p buffer so far.
  [[nodiscard]] std::vector<ActionId> const& users(Buffer const& buffer) const {
    return graph_.rings.at(buffer.ring).users.at(buffer.sequence);
  }

  /// Says that \p id is the event \p event for later graphs. Of several on one lane the latest
  /// stays.
  void publish(BlockEvent event, ActionId id) {
    auto& ids = graph_.block_events[event];
    auto const& lane = graph_.actions[id.index()].lane;
    std::erase_if(ids, [&](ActionId other) { return graph_.actions[other.index()].lane == lane; });
    ids.push_back(id);
  }

  [[nodiscard]] Action const& operator[](ActionId id) const { return graph_.actions[id.index()]; }

  /// Hands over the graph.
  [[nodiscard]] ActionGraph finish(std::size_t advance) && {
    graph_.advance = advance;
    return std::move(graph_);
  }

  [[nodiscard]] static constexpr bool is_ring(BufferKind kind) noexcept {
    return kind <= BufferKind::landing;
  }

 private:
  void keep_latest_waits(Action& action) const {
    std::map<Lane, ActionId> latest;
    for (auto const wait : action.waits) {
      assert(wait.index() < graph_.actions.size());
      auto const& lane = graph_.actions[wait.index()].lane;
      if (lane != action.lane) {
        auto& kept = latest[lane];
        kept = std::max(kept, wait);
      }
    }
    action.waits.clear();
    for (auto const& [lane, wait] : latest) {
      action.waits.push_back(wait);
    }
    std::sort(action.waits.begin(), action.waits.end());
    for (auto const& event : action.block_waits) {
      require(event.age <= 2, Errc::invalid_argument, "the age of a protocol's event is at most 2");
    }
    std::sort(action.block_waits.begin(), action.block_waits.end());
    auto const repeated = std::unique(action.block_waits.begin(), action.block_waits.end());
    action.block_waits.erase(repeated, action.block_waits.end());
  }

  ActionGraph graph_;
};

}  // namespace roundpipe
