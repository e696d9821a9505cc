// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/graph_history.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace graph_history_test {

using namespace roundpipe;

namespace {

using Past = std::pair<int, std::size_t>;  // run, action

Action action_on(LaneKind lane, std::size_t device = 0) {
  Action action;
  action.lane = {lane, DeviceId(device)};
  return action;
}
Action host_action(LaneKind lane) {
  Action action;
  action.lane = {lane, DeviceId::none()};
  return action;
}

/// The waits of action number \p action of \p graph.
std::vector<Past> waits(GraphHistory<int> const& history,
                        ActionGraph const& graph,
                        GraphBinding const& place,
                        std::size_t action = 0) {
  std::vector<Past> result;
  history.resolve(graph, place, [&](ActionId id, auto const& past) {
    if (id == ActionId(action)) {
      result.emplace_back(past.run, past.action.index());
    }
  });
  return result;
}

BlockEvent const uploaded{BlockId(0), BlockEventKind::upload};

/// An upload of block 0, on a device's lane.
ActionGraph upload_graph(std::size_t device = 0) {
  ActionGraph graph;
  graph.actions.push_back(action_on(LaneKind::parameter_up, device));
  graph.block_events[uploaded] = {ActionId(0)};
  return graph;
}
/// A host action that waits for uploads of block 0 from \p age iterations ago.
ActionGraph waiting_graph(std::size_t age = 0) {
  ActionGraph graph;
  graph.actions.push_back(host_action(LaneKind::optimizer));
  graph.actions[0].block_waits = {{BlockId(0), BlockEventKind::upload, age}};
  return graph;
}

/// Activations of \p micro_batches micro-batches of slot 0, with two copies each.
ActionGraph copies_graph(std::size_t micro_batches) {
  ActionGraph graph;
  for (std::size_t m = 0; m < micro_batches; ++m) {
    for (int copy = 0; copy < 2; ++copy) {
      graph.actions.push_back(action_on(LaneKind::activation_up));
      graph.actions.back().slot = SlotId(0);
      graph.actions.back().micro_batch = MicroBatchId(m);
    }
  }
  return graph;
}
/// A chunk that waits for the earlier copies except those of the last \p back micro-batches.
ActionGraph chunk_graph(std::size_t back, std::size_t device = 0) {
  ActionGraph graph;
  graph.actions.push_back(action_on(LaneKind::parameter_up, device));
  graph.actions[0].lane_waits = {{LaneKind::activation_up, back}};
  return graph;
}

}  // namespace

TEST_CASE("relative devices rotate from the first device") {
  GraphBinding const place{2, 3, 1};
  CHECK(place.physical(DeviceId(0)) == DeviceId(2));
  CHECK(place.physical(DeviceId(1)) == DeviceId(0));
  CHECK(place.physical(DeviceId::none()) == DeviceId::none());
  CHECK(place.physical(Lane{LaneKind::compute, DeviceId(2)}).device == DeviceId(1));
  CHECK(place.physical(Ring{BufferKind::landing, DeviceId::none(), 4}).index == 4);
}

TEST_CASE("a wait for an event covers the latest action of every lane") {
  GraphHistory<int> history;
  history.remember(upload_graph(0), {0, 2, 1}, 1);
  history.remember(upload_graph(1), {0, 2, 1}, 2);
  history.remember(upload_graph(0), {0, 2, 1}, 3);
  CHECK(waits(history, waiting_graph(), {0, 2, 1}) == std::vector<Past>{{2, 0}, {3, 0}});
  auto other = waiting_graph();
  other.actions[0].block_waits[0].block = BlockId(1);
  CHECK(waits(history, other, {0, 2, 1}).empty());
}

TEST_CASE("the history knows physical devices, whatever a graph calls them") {
  GraphHistory<int> history;
  history.remember(upload_graph(0), {1, 2, 1}, 1);  // on device 1
  history.remember(upload_graph(1), {0, 2, 1}, 2);  // on device 1, too
  CHECK(waits(history, waiting_graph(), {0, 2, 1}) == std::vector<Past>{{2, 0}});
}

TEST_CASE("an age leaves out younger events and finds the older ones behind them") {
  GraphHistory<int> history;
  for (int iteration = 1; iteration <= 5; ++iteration) {
    history.remember(upload_graph(), {0, 1, static_cast<std::size_t>(iteration)}, iteration);
  }
  CHECK(waits(history, waiting_graph(0), {0, 1, 5}) == std::vector<Past>{{5, 0}});
  CHECK(waits(history, waiting_graph(1), {0, 1, 5}) == std::vector<Past>{{4, 0}});
  CHECK(waits(history, waiting_graph(2), {0, 1, 5}) == std::vector<Past>{{3, 0}});
  CHECK(waits(history, waiting_graph(2), {0, 1, 6}) == std::vector<Past>{{4, 0}});
}

TEST_CASE("waits for the same physical lane are left to the lane's order") {
  GraphHistory<int> history;
  history.remember(upload_graph(0), {0, 2, 1}, 1);
  auto again = upload_graph(0);
  again.actions[0].block_waits = {uploaded};
  CHECK(waits(history, again, {0, 2, 1}).empty());
  CHECK(waits(history, again, {1, 2, 1}) == std::vector<Past>{{1, 0}});
}

TEST_CASE("a ring entry is free when the users of its former content are done") {
  Ring const ring{BufferKind::checkpoint, DeviceId::none(), 7};
  ActionGraph graph;  // three acquisitions of two entries: 0, 1, 0
  graph.actions.assign(3, host_action(LaneKind::optimizer));
  graph.rings[ring] = {2, 3, {{ActionId(0)}, {ActionId(1)}, {ActionId(2)}}};
  GraphHistory<int> history;
  CHECK(history.ring_base(ring) == 0);
  history.remember(graph, {0, 1, 1}, 1);
  CHECK(history.ring_base(ring) == 3);

  ActionGraph next;  // takes entries 1, then 0
  next.actions.assign(2, action_on(LaneKind::activation_down));
  next.actions[0].ring_waits = {{ring, 0}};
  next.actions[1].ring_waits = {{ring, 1}};
  next.rings[ring] = {2, 2, {{ActionId(0)}, {ActionId(1)}}};
  CHECK(waits(history, next, {0, 1, 1}, 0) == std::vector<Past>{{1, 1}});
  CHECK(waits(history, next, {0, 1, 1}, 1) == std::vector<Past>{{1, 2}});
}

TEST_CASE("a ring of a device is found by the physical device") {
  Ring const ring{BufferKind::parameters, DeviceId(0), 0};
  ActionGraph graph;
  graph.actions = {action_on(LaneKind::parameter_up), action_on(LaneKind::compute)};
  graph.actions[0].ring_waits = {{ring, 0}};
  graph.rings[ring] = {1, 1, {{ActionId(0), ActionId(1)}}};
  GraphHistory<int> history;
  history.remember(graph, {1, 2, 1}, 1);  // on device 1
  CHECK(history.ring_base(ring) == 0);
  CHECK(waits(history, graph, {0, 2, 1}).empty());
  CHECK(waits(history, graph, {1, 2, 1}) == std::vector<Past>{{1, 1}});
}

TEST_CASE("the first contents of a ring wait for nobody") {
  Ring const ring{BufferKind::checkpoint, DeviceId::none(), 0};
  ActionGraph graph;
  graph.actions.assign(2, host_action(LaneKind::optimizer));
  graph.actions[0].ring_waits = {{ring, 0}};
  graph.actions[1].ring_waits = {{ring, 1}};
  graph.rings[ring] = {2, 1, {{ActionId(0)}}};
  GraphHistory<int> history;
  CHECK(waits(history, graph, {0, 1, 1}, 0).empty());
  history.remember(graph, {0, 1, 1}, 1);
  graph.actions[0].lane.kind = LaneKind::parameter_copy;
  CHECK(waits(history, graph, {0, 1, 1}, 0).empty());  // the second entry
}

TEST_CASE("a ring belongs to the physical device") {
  Ring const ring{BufferKind::parameters, DeviceId(0), 0};
  ActionGraph graph;
  graph.actions.push_back(action_on(LaneKind::compute));
  graph.rings[ring] = {1, 1, {{ActionId(0)}}};
  GraphHistory<int> history;
  history.remember(graph, {1, 2, 1}, 1);
  CHECK(history.ring_base(ring) == 0);
  CHECK(history.ring_base({BufferKind::parameters, DeviceId(1), 0}) == 1);
}

TEST_CASE("a wait for a lane's last slot leaves out the slot's last micro-batches") {
  GraphHistory<int> history;
  CHECK(waits(history, chunk_graph(0), {0, 1, 1}).empty());
  history.remember(copies_graph(3), {0, 1, 1}, 1);
  CHECK(waits(history, chunk_graph(0), {0, 1, 1}) == std::vector<Past>{{1, 5}});
  CHECK(waits(history, chunk_graph(1), {0, 1, 1}) == std::vector<Past>{{1, 3}});
  CHECK(waits(history, chunk_graph(2), {0, 1, 1}) == std::vector<Past>{{1, 1}});
  CHECK(waits(history, chunk_graph(3), {0, 1, 1}).empty());
  CHECK(waits(history, chunk_graph(0, 1), {0, 2, 1}).empty());  // the lane of another device
}

TEST_CASE("when the last slot has too few micro-batches, the wait covers the slot before") {
  GraphHistory<int> history;
  history.remember(copies_graph(3), {0, 1, 1}, 1);
  history.remember(copies_graph(2), {0, 1, 1}, 2);  // an evaluation with fewer micro-batches
  CHECK(waits(history, chunk_graph(1), {0, 1, 1}) == std::vector<Past>{{2, 1}});
  CHECK(waits(history, chunk_graph(2), {0, 1, 1}) == std::vector<Past>{{1, 5}});
  CHECK(waits(history, chunk_graph(3), {0, 1, 1}) == std::vector<Past>{{1, 5}});
}

TEST_CASE("the last micro-batches are told by their numbers, where some have no copies") {
  GraphHistory<int> history;
  history.remember(copies_graph(3), {0, 1, 1}, 1);
  auto some = copies_graph(4);  // of micro-batches 1 and 3
  some.actions.erase(some.actions.begin() + 4, some.actions.begin() + 6);
  some.actions.erase(some.actions.begin(), some.actions.begin() + 2);
  history.remember(some, {0, 1, 1}, 2);
  CHECK(waits(history, chunk_graph(0), {0, 1, 1}) == std::vector<Past>{{2, 3}});
  CHECK(waits(history, chunk_graph(1), {0, 1, 1}) == std::vector<Past>{{2, 1}});
  CHECK(waits(history, chunk_graph(2), {0, 1, 1}) == std::vector<Past>{{2, 1}});
  CHECK(waits(history, chunk_graph(3), {0, 1, 1}) == std::vector<Past>{{1, 5}});
}

}  // namespace graph_history_test
