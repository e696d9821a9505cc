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

/// Builds an \ref ActionGraph: one action after another, in issue order.
///
/// A ring entry is acquired by its first writer, which waits for all users of the entry's former
/// content; whoever reads or writes an entry is a user.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::size_t devices) { graph_.devices = devices; }

  /// Appends \p action and returns its id. Its waits may be given in any order and more than once:
  /// of several on one lane the latest stays, and those on its own lane are implied.
  ActionId add(Action action);

  /// The next entry of \p ring, which has \p count entries; \p action, its first writer, gets the
  /// waits that this takes.
  Buffer acquire(Ring const& ring, std::size_t count, Action& action);

  /// Actions of this graph that touch \p buffer so far.
  [[nodiscard]] std::vector<ActionId> const& users(Buffer const& buffer) const {
    return graph_.rings.at(buffer.ring).users.at(buffer.sequence);
  }

  /// Says that \p id is the event \p event for later graphs. Of several on one lane the latest
  /// stays.
  void publish(BlockEvent event, ActionId id);

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
  void keep_latest_waits(Action& action) const;

  ActionGraph graph_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/graph_builder.ipp>
#endif
