// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/slot_times.hpp>

#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/stage_layout.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <utility>

namespace slot_times_test {

using namespace roundpipe;
using detail::SlotTimes;

namespace {

/// A slot on device 1 that runs layers 3 and 4.
struct Slot {
  SlotTimes times;
  StageLayout layout;

  Slot() { layout.range = {3, 2}; }

  void add(Action action, double start_s, double end_s) {
    times.add(
        timeline_entry(action, 0, ActionId(0), {LaneKind::compute, DeviceId(1)}, start_s, end_s),
        action,
        layout);
  }
};

Action on_layer(ActionKind kind, std::size_t layer) {
  Action action;
  action.kind = kind;
  action.layer = LayerId(layer);
  action.micro_batch = MicroBatchId(0);
  return action;
}

}  // namespace

TEST_CASE("passes of a layer last from its first forward to its last backward") {
  Slot slot;
  slot.add(on_layer(ActionKind::recompute, 4), 2, 3);
  slot.add(on_layer(ActionKind::backward, 4), 5, 7);
  slot.add(on_layer(ActionKind::backward, 3), 7, 8);
  auto const& layers = slot.times.micro_batches.at(MicroBatchId(0)).layers;
  REQUIRE(layers.size() == 2);
  CHECK(layers[1].passes().from_s == 2);
  CHECK(layers[1].passes().until_s == 7);
  CHECK(layers[0].passes().from_s == 7);
  CHECK(layers[0].passes().until_s == 8);
  CHECK(slot.times.device == DeviceId(1));
}

TEST_CASE("copies of boundaries, saves and parameters have times of their own") {
  Slot slot;
  auto up = on_layer(ActionKind::upload_activation, 3);
  slot.add(up, 0, 1);
  slot.add(on_layer(ActionKind::download_save, 3), 4, 6);
  slot.add(on_layer(ActionKind::send_boundary, 4), 6, 9);
  Action chunk;
  chunk.kind = ActionKind::upload_parameters;
  slot.add(chunk, 1, 2);
  chunk.kind = ActionKind::download_gradients;
  slot.add(chunk, 8, 9);
  auto const& micro_batch = slot.times.micro_batches.at(MicroBatchId(0));
  CHECK(slot.times.micro_batches.size() == 1);  // chunks are of none
  CHECK(micro_batch.input_up.until_s == 1);
  CHECK(micro_batch.layers[0].save_copy.from_s == 4);
  CHECK(micro_batch.layers[1].sent.until_s == 9);
  REQUIRE(slot.times.uploads.size() == 1);
  CHECK(slot.times.uploads[0].copy.from_s == 1);
  REQUIRE(slot.times.downloads.size() == 1);
  CHECK(slot.times.downloads[0].copy.from_s == 8);
}

TEST_CASE("boundaries that the device keeps are noted, those of the host are not") {
  Slot slot;
  auto action = on_layer(ActionKind::forward, 3);
  action.reads = {{{BufferKind::checkpoint, DeviceId::none(), 0}, 0}};
  action.writes = {{{BufferKind::checkpoint, DeviceId(1), 0}, 0}};
  slot.add(action, 0, 1);
  CHECK(slot.times.micro_batches.at(MicroBatchId(0)).layers[0].resident ==
        std::set<std::pair<BufferKind, bool>>{{BufferKind::checkpoint, true}});
}

}  // namespace slot_times_test
