// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_builder.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE ActionId GraphBuilder::add(Action action) {
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

ROUNDPIPE_INLINE Buffer GraphBuilder::acquire(Ring const& ring, std::size_t count, Action& action) {
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

ROUNDPIPE_INLINE void GraphBuilder::publish(BlockEvent event, ActionId id) {
  auto& ids = graph_.block_events[event];
  auto const& lane = graph_.actions[id.index()].lane;
  std::erase_if(ids, [&](ActionId other) { return graph_.actions[other.index()].lane == lane; });
  ids.push_back(id);
}

ROUNDPIPE_INLINE void GraphBuilder::keep_latest_waits(Action& action) const {
  std::erase_if(action.waits, [&](ActionId wait) {
    assert(wait.index() < graph_.actions.size());
    return graph_.actions[wait.index()].lane == action.lane;
  });
  action.waits = latest_of_lanes(graph_.actions, std::move(action.waits));
  for (auto const& event : action.block_waits) {
    require(
        event.age <= 2, Errc::invalid_argument, "the age of a protocol's event must be at most 2");
  }
  std::sort(action.block_waits.begin(), action.block_waits.end());
  auto const repeated = std::unique(action.block_waits.begin(), action.block_waits.end());
  action.block_waits.erase(repeated, action.block_waits.end());
}

}  // namespace roundpipe
