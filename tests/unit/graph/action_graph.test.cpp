// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/action_graph.hpp>

#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace action_graph_test {
namespace {

using namespace roundpipe;

Action on(LaneKind lane, int device) {
  Action action;
  action.lane = {lane, DeviceId(device)};
  return action;
}

}  // namespace

TEST_CASE("of the actions on one lane the latest stays, in ascending order") {
  std::vector<Action> const actions{on(LaneKind::compute, 0),
                                    on(LaneKind::compute, 1),
                                    on(LaneKind::gradient_down, 0),
                                    on(LaneKind::compute, 0),
                                    on(LaneKind::compute, 1)};
  CHECK(latest_of_lanes(actions, {}).empty());
  CHECK(latest_of_lanes(actions, {ActionId(1), ActionId(3), ActionId(2), ActionId(0)}) ==
        std::vector{ActionId(1), ActionId(2), ActionId(3)});
  CHECK(latest_of_lanes(actions, {ActionId(4), ActionId(1), ActionId(4)}) ==
        std::vector{ActionId(4)});
}

TEST_CASE("of two buffers of a kind, that which the action writes is found") {
  Action action;
  CHECK(find_buffer(action, BufferKind::master) == nullptr);
  auto const read = block_buffer(BufferKind::master, BlockId(1));
  auto const written = block_buffer(BufferKind::master, BlockId(2));
  action.reads = {block_buffer(BufferKind::gradient, BlockId(1)), read};
  CHECK(*find_buffer(action, BufferKind::master) == read);
  action.writes = {written};
  CHECK(*find_buffer(action, BufferKind::master) == written);
  CHECK(find_buffer(action, BufferKind::norm) == nullptr);
}

}  // namespace action_graph_test
