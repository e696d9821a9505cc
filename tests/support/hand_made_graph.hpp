// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Small graphs written down action by action.

#include <roundpipe/graph/action_graph.hpp>

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// An action under construction: `Made(ActionKind::forward, LaneKind::compute, 0).reads(buffer)`.
struct Made {
  Action action;

  /// An action of device \p device.
  Made(ActionKind kind, LaneKind lane, std::size_t device) {
    action.kind = kind;
    action.lane = {lane, DeviceId(device)};
    if (lane == LaneKind::compute) {
      action.uses = {BlockUseId(0)};
    }
  }
  /// An action on the host's lanes, for block 0.
  Made(ActionKind kind, LaneKind lane) {
    action.kind = kind;
    action.lane = {lane, DeviceId::none()};
    action.block = BlockId(0);
  }

  Made& reads(Buffer buffer) {
    action.reads.push_back(buffer);
    return *this;
  }
  Made& writes(Buffer buffer) {
    action.writes.push_back(buffer);
    return *this;
  }
  Made& after(std::initializer_list<std::size_t> waits) {
    for (auto const wait : waits) {
      action.waits.push_back(ActionId(wait));
    }
    return *this;
  }
  Made& after(BlockEventKind kind, std::size_t age = 0) {
    action.block_waits.push_back({BlockId(0), kind, age});
    return *this;
  }
  Made& after_users(Buffer buffer) {
    action.ring_waits.push_back(buffer);
    return *this;
  }
  Made& in_slot(std::size_t slot, std::size_t micro_batch) {
    action.slot = SlotId(slot);
    action.micro_batch = MicroBatchId(micro_batch);
    return *this;
  }
  /// A gated chunk for window \p window of slot \p slot.
  Made& gated(std::size_t slot, std::size_t window) {
    action.gated = true;
    action.window_slot = SlotId(slot);
    return in_slot(slot + 1, window);
  }
};

/// The plain buffer of block 0.
inline Buffer of_block(BufferKind kind) {
  return {{kind, DeviceId::none(), 0}, 0};
}

/// Actions in issue order; publishes no event.
inline ActionGraph graph_of(std::initializer_list<Made> actions,
                            GraphRole role = GraphRole::call,
                            std::size_t devices = 2) {
  ActionGraph graph;
  graph.role = role;
  graph.devices = devices;
  for (auto const& made : actions) {
    graph.actions.push_back(made.action);
  }
  return graph;
}

/// Gives \p ring \p count entries, and names the users of the entry that an action acquires.
inline void add_ring(ActionGraph& graph,
                     Ring ring,
                     std::size_t count,
                     std::vector<std::vector<ActionId>> users) {
  auto const acquisitions = users.size();
  graph.rings[ring] = {count, acquisitions, std::move(users)};
}

}  // namespace roundpipe::test
