// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/device_places.hpp>

#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>

namespace device_places_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("actions find their entries in turn, each in the arena of the device that plays theirs") {
  PlannedCall test;
  test.run.begin(1, {.first_device = 1, .devices = 2});
  std::set<std::byte*> entries;
  test.for_each_device_action([&](DeviceAction const& here) {
    CHECK(here.device != here.action.lane.device);
    auto const entry = test.places.entry(here, BufferKind::parameters);
    if (!entry.empty()) {
      CHECK(test.in_arena(here.device, entry));
      CHECK(entry.size() == here.stage().parameter_bytes);
      // The first entry begins the arena, the second one ends the region.
      auto const arena = test.memory[here.device.index()].device_bytes().device_pointer();
      auto const second = find_buffer(here.action, BufferKind::parameters)->sequence % 2 == 1;
      CHECK(entry.device_pointer() ==
            arena + (second ? test.plan.stages.memory.region_bytes - entry.size() : 0));
      entries.insert(entry.device_pointer());
    }
  });
  CHECK(entries.size() >= 2 * test.plan.stages.memory.ring(BufferKind::parameters).count);
}

TEST_CASE("a ring goes on where it stood when the run began") {
  PlannedCall test;
  auto const& graph = test.program.graph();
  auto const& ring = test.plan.stages.memory.ring(BufferKind::activations_in);
  test.for_each_device_action([&](DeviceAction const& here) {
    auto const before = test.places.entry(here, BufferKind::activations_in);
    if (before.empty()) {
      return;
    }
    for (auto const& [known, use] : graph.rings) {
      test.run.set_ring_base(known, ring.count);
    }
    CHECK(test.places.entry(here, BufferKind::activations_in).device_pointer() ==
          before.device_pointer());
    for (auto const& [known, use] : graph.rings) {
      test.run.set_ring_base(known, 1);
    }
    CHECK(
        (ring.count == 1 || test.places.entry(here, BufferKind::activations_in).device_pointer() !=
                                before.device_pointer()));
    for (auto const& [known, use] : graph.rings) {
      test.run.set_ring_base(known, 0);
    }
  });
}

TEST_CASE("a boundary lies among those of its kind on its device, where its ring's number says") {
  PlannedCall const test;
  auto memory = test.plan.stages.memory;
  memory.add_resident(BufferKind::checkpoint, {0, 512, 3});
  memory.add_resident(BufferKind::boundary_gradient, {0, 256, 2});
  CHECK(memory.bytes == test.plan.stages.memory.bytes + 3 * 512 + 2 * 256);
  AlignedMemory other(memory.bytes);
  AlignedMemory arena(memory.bytes);
  DevicePlaces const places(memory, {other.device_bytes(), arena.device_bytes()});
  Action action;
  action.reads = {{{BufferKind::checkpoint, DeviceId(1), 2}, 0},
                  {{BufferKind::boundary_gradient, DeviceId(1), 1}, 5}};
  action.writes = {{{BufferKind::checkpoint, DeviceId::none(), 1}, 0}};
  DeviceAction const here{test.run, action, DeviceId(0)};
  auto const end = arena.device_bytes().device_pointer() + memory.bytes;
  auto const checkpoint = places.resident(here, action.reads, BufferKind::checkpoint);
  CHECK(checkpoint.device_pointer() == end - 2 * 256 - 512);
  CHECK(checkpoint.size() == 512);
  auto const gradient = places.resident(here, action.reads, BufferKind::boundary_gradient);
  CHECK(gradient.device_pointer() == end - 256);
  CHECK(gradient.size() == 256);
  CHECK(places.resident(here, action.writes, BufferKind::checkpoint).empty());  // on the host
  CHECK(places.resident(here, action.writes, BufferKind::boundary_gradient).empty());
}

TEST_CASE("a block that stays lies at its own place, and the others in the stage's entry") {
  PlannedCall test;
  auto memory = test.plan.stages.memory;
  memory.add_resident(BlockId(1), 512);
  memory.add_resident(BlockId(2), 256);
  CHECK(memory.resident_parameter_bytes() == 768);
  AlignedMemory arena(memory.bytes);
  DevicePlaces const places(memory, {arena.device_bytes()});
  Action action;
  action.stage = StageId(0);
  action.reads = {{{BufferKind::parameters, DeviceId(0), resident_ring(BlockId(1))}, 0},
                  {{BufferKind::parameters, DeviceId(0), 0}, 0}};
  action.writes = {{{BufferKind::parameters, DeviceId(0), resident_ring(BlockId(2))}, 0}};
  for (auto const* list : {&action.reads, &action.writes}) {
    for (auto const& buffer : *list) {
      test.run.set_ring_base(buffer.ring, 0);
    }
  }
  DeviceAction const here{test.run, action, DeviceId(0)};
  auto const begin = arena.device_bytes().device_pointer();
  CHECK(places.parameters(here, BlockId(0)).device_pointer() == begin);
  CHECK(places.parameters(here, BlockId(1)).device_pointer() == begin + memory.bytes - 768);
  CHECK(places.parameters(here, BlockId(1)).size() == 512);
  CHECK(places.parameters(here, BlockId(2)).device_pointer() == begin + memory.bytes - 256);
  action.reads.clear();
  CHECK(places.parameters(here, BlockId(0)).empty());  // a backward that reads none
  CHECK(places.parameters(here, BlockId(1)).empty());
}

TEST_CASE("what has no place has no bytes") {
  PlannedCall test;
  test.for_each_device_action([&](DeviceAction const& here) {
    CHECK(test.places.at(here, {}).empty());
    CHECK(test.places.at(here, {Area::scratch, 256, 0}).empty());
  });
}

TEST_CASE("an action knows its micro-batch of the call, its stage and its layer's places") {
  PlannedCall test;
  test.for_each_device_action([&](DeviceAction const& here) {
    CHECK(here.stage().range.end() <= test.plan.model.size());
    if (here.action.lane.kind == LaneKind::compute) {
      CHECK(here.micro_batch() == here.action.micro_batch.index());
      CHECK(&here.places() ==
            &here.stage().layers[here.action.layer.index() - here.stage().range.first]);
    }
    for (auto const& place : here.stage().uses) {
      CHECK(&here.place_of(place.use) == &place);
    }
  });
}

}  // namespace device_places_test
