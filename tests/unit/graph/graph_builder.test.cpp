// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/graph_builder.hpp>

#include <roundpipe/runtime/execute/graph_program.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace graph_builder_test {

using namespace roundpipe;

namespace {

Action on(LaneKind lane, int device = 0) {
  Action action;
  action.lane = {lane, device < 0 ? DeviceId::none() : DeviceId(device)};
  return action;
}

}  // namespace

TEST_CASE(
    "of several waits for one lane the latest stays, and waits for the own lane are implied") {
  GraphBuilder builder(2);
  auto const a = builder.add(on(LaneKind::compute));
  auto const b = builder.add(on(LaneKind::compute));
  auto const c = builder.add(on(LaneKind::activation_up));
  auto action = on(LaneKind::activation_up);
  action.waits = {b, a, c, a};
  auto const d = builder.add(action);
  CHECK(builder[d].waits == std::vector{b});
}

TEST_CASE("repeated waits for an event become one wait for each age") {
  GraphBuilder builder(1);
  BlockEvent const upload{BlockId(0), BlockEventKind::upload};
  BlockEvent const older{BlockId(0), BlockEventKind::upload, 2};
  BlockEvent const other{BlockId(1), BlockEventKind::upload};
  auto action = on(LaneKind::optimizer, -1);
  action.block_waits = {other, older, upload, other, upload};
  auto const id = builder.add(action);
  CHECK(builder[id].block_waits == std::vector{upload, older, other});
}

TEST_CASE("an entry is acquired after all users of its former content") {
  GraphBuilder builder(1);
  Ring const ring{BufferKind::parameters, DeviceId(0), 0};
  auto const use = [&](LaneKind writer_lane, LaneKind reader_lane) {
    auto writer = on(writer_lane);
    auto const buffer = builder.acquire(ring, 2, writer);
    writer.writes.push_back(buffer);
    auto const w = builder.add(writer);
    auto reader = on(reader_lane);
    reader.reads.push_back(buffer);
    return std::pair{w, builder.add(reader)};
  };
  auto const first = use(LaneKind::parameter_up, LaneKind::compute);
  auto const second = use(LaneKind::parameter_up, LaneKind::compute);
  auto const third = use(LaneKind::parameter_up, LaneKind::compute);
  CHECK(builder[first.first].ring_waits.size() == 1);  // from earlier graphs
  CHECK(builder[second.first].ring_waits.size() == 1);
  CHECK(builder[third.first].ring_waits.empty());
  CHECK(builder[third.first].waits == std::vector{first.second});
}

TEST_CASE("later graphs wait for the latest action of each lane that made an event") {
  GraphBuilder builder(2);
  BlockEvent const event{BlockId(3), BlockEventKind::upload};
  builder.publish(event, builder.add(on(LaneKind::parameter_up, 0)));
  auto const b = builder.add(on(LaneKind::parameter_up, 0));
  auto const c = builder.add(on(LaneKind::parameter_up, 1));
  builder.publish(event, b);
  builder.publish(event, c);
  auto const graph = std::move(builder).finish(1);
  CHECK(graph.block_events.at(event) == std::vector{b, c});
  CHECK(graph.advance == 1);
}

TEST_CASE("a program lists its actions by thread, and names them") {
  GraphBuilder builder(2);
  auto first = on(LaneKind::compute, 1);
  first.kind = ActionKind::backward;
  first.layer = LayerId(3);
  first.stage = StageId(5);
  auto const a = builder.add(first);
  auto const b = builder.add(on(LaneKind::optimizer, -1));
  auto const c = builder.add(on(LaneKind::activation_down, 1));
  GraphProgram const program(std::move(builder).finish(0));
  CHECK(program.of_issuer({DeviceId(0)}).empty());
  CHECK(program.of_issuer({DeviceId(1)}) == std::vector{a, c});
  CHECK(std::ranges::equal(program.of_host(LaneKind::optimizer), std::vector{b}));
  CHECK(program.of_host(LaneKind::accumulate).empty());
  CHECK(program.position(c) == 1);
  CHECK(program.tails().size() == 3);
  CHECK(program.label(a) == "backward of layer 3, stage 5");
}

}  // namespace graph_builder_test
