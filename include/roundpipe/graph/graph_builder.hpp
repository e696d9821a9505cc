// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Appends actions to a graph and derives their waits from the buffers that they use.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// Builds an \ref ActionGraph one action at a time, in issue order.
/// The first writer of a ring entry acquires it and waits for all users of its former content.
/// Every action that reads or writes an entry is a user.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::size_t devices) { graph_.devices = devices; }

  /// Appends \p action and returns its id. Waits may come in any order and more than once: the
  /// latest wait for each lane stays, and the own lane's order implies the waits for it.
  ActionId add(Action action);

  /// Acquires the next entry of \p ring, which has \p count entries, for \p action, its first
  /// writer. Adds the necessary waits to \p action.
  Buffer acquire(Ring const& ring, std::size_t count, Action& action);

  /// The actions of this graph that touch \p buffer so far.
  [[nodiscard]] std::vector<ActionId> const& users(Buffer const& buffer) const {
    return graph_.rings.at(buffer.ring).users.at(buffer.sequence);
  }

  /// How often this graph has acquired an entry of \p ring so far.
  [[nodiscard]] std::size_t acquisitions(Ring const& ring) const {
    auto const found = graph_.rings.find(ring);
    return found == graph_.rings.end() ? 0 : found->second.acquisitions;
  }

  /// Declares \p id as event \p event for later graphs. The latest such action of each lane stays.
  void publish(BlockEvent event, ActionId id);

  [[nodiscard]] Action const& operator[](ActionId id) const { return graph_.actions[id.index()]; }

  /// Returns the finished graph.
  [[nodiscard]] ActionGraph finish(std::size_t advance) && {
    graph_.advance = advance;
    return std::move(graph_);
  }

  [[nodiscard]] static constexpr bool is_ring(BufferKind kind) noexcept {
    return kind <= BufferKind::landing;
  }

 private:
  void keep_latest_waits(Action& action) const;

  ActionGraph graph_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/graph_builder.ipp>
#endif
