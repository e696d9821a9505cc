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
      CHECK(entry.size() == test.plan.stages.memory.ring(BufferKind::parameters).entry_bytes);
      entries.insert(entry.device_pointer());
    }
  });
  CHECK(entries.size() == 2 * test.plan.stages.memory.ring(BufferKind::parameters).count);
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
