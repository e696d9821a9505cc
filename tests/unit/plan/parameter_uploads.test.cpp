// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/parameter_uploads.hpp>

#include <support/own_policies.hpp>
#include <support/small_call.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace parameter_uploads_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// All parameter chunks of \p small, and nothing else.
std::vector<Action> uploads_of(SmallCall const& small) {
  auto const input = small.input();
  detail::CallContext call(input);
  detail::ParameterUploads uploads(call);
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    uploads.add_own(SlotId(s));
    for (std::size_t w = 0; w < call.micro_batches_per_round(); ++w) {
      uploads.add_window(SlotId(s), w);
    }
  }
  return actions_of(std::move(call), ActionKind::upload_parameters);
}

}  // namespace

TEST_CASE("every parameter goes up once for each slot, with windows and without") {
  for (std::size_t const entries : {1, 2}) {
    for (std::size_t devices = 1; devices <= 3; ++devices) {
      SmallCall const small(devices, 2, 2, {entries, 2, 2});
      std::vector<Bytes> uploaded(2 * SmallCall::stages);
      for (auto const& chunk : uploads_of(small)) {
        uploaded[chunk.slot.index()] += chunk.bytes;
      }
      for (std::size_t s = 0; s < uploaded.size(); ++s) {
        CHECK(uploaded[s] == small.parameter_bytes(s % SmallCall::stages));
      }
    }
  }
}

TEST_CASE("chunks read the master copies of their blocks, so that P copies wait for them") {
  SmallCall const small(2, 2);
  for (auto const& chunk : uploads_of(small)) {
    REQUIRE_FALSE(chunk.pieces.empty());
    for (auto const& piece : chunk.pieces) {
      auto const block = small.blocks().use(piece.use).block;
      CHECK(std::ranges::count(chunk.reads, block_buffer(BufferKind::master, block)) == 1);
    }
  }
}

TEST_CASE("with one entry on a device, chunks go up when their slot begins, in no window") {
  SmallCall const small(2, 3, 1, {1, 2, 2});
  SlotId latest(0);
  for (auto const& chunk : uploads_of(small)) {
    CHECK_FALSE(chunk.window_slot.valid());
    CHECK(chunk.slot >= latest);
    latest = chunk.slot;
  }
  CHECK(latest == SlotId(SmallCall::stages - 1));
}

TEST_CASE("with two entries chunks go up in the windows of the previous slot of their device") {
  SmallCall const small(2, 3);
  std::size_t in_windows = 0;
  for (auto const& chunk : uploads_of(small)) {
    if (chunk.slot.index() < 2) {  // the first slot of each device
      CHECK_FALSE(chunk.window_slot.valid());
      continue;
    }
    CHECK(chunk.window_slot == SlotId(chunk.slot.index() - 2));
    ++in_windows;
  }
  CHECK(in_windows > 0);
}

TEST_CASE("the windows of a device's first slot are the last windows of earlier graphs") {
  SmallCall const small(1, 3);
  for (auto const& chunk : uploads_of(small)) {
    if (chunk.slot != SlotId(0) || !chunk.gated) {
      CHECK(chunk.lane_waits.empty());
      continue;
    }
    REQUIRE(chunk.lane_waits.size() == 1);
    CHECK(chunk.lane_waits[0].kind == LaneKind::activation_up);
    // Two activations are in flight: in window 0 of 3 all but one have gone up.
    CHECK(chunk.lane_waits[0].back == (chunk.micro_batch == MicroBatchId(0) ? 1 : 0));
  }
}

TEST_CASE("chunks of the last window wait for an early activation of their own slot") {
  constexpr std::size_t micro_batches = 3;
  for (std::size_t const devices : {1, 2, 3, 4}) {
    SmallCall const small(devices, micro_batches);
    auto input = small.input();
    input.chunks = [](std::span<Bytes const> tensors, std::size_t windows) {
      auto chunks = CopyAtOnce{}.chunks(tensors, windows);  // in the last window
      chunks.front().gated = true;
      return chunks;
    };
    detail::CallContext call(input);
    SlotId const slot(devices);  // the second slot of device 0
    auto const up =
        call.graph.add(call.make(slot, ActionKind::upload_activation, LaneKind::activation_up, 0));
    call.work_of(slot).activation_up[0] = up;
    detail::ParameterUploads uploads(call);
    for (std::size_t w = 0; w < micro_batches; ++w) {
      uploads.add_window(SlotId(0), w);
    }
    uploads.add_own(slot);
    auto const chunks = actions_of(std::move(call), ActionKind::upload_parameters);
    REQUIRE(chunks.size() == 1);
    CHECK(chunks[0].micro_batch == MicroBatchId(micro_batches - 1));
    CHECK(chunks[0].waits == (devices < micro_batches ? std::vector{up} : std::vector<ActionId>{}));
  }
}

TEST_CASE("only uploads of trained blocks are events") {
  SmallCall const small(1, 2, 1, {}, {.dense = 2, .frozen_dense = 1});
  auto const input = small.input();
  detail::CallContext call(input);
  detail::ParameterUploads uploads(call);
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    uploads.add_own(SlotId(s));
    uploads.add_window(SlotId(s), 0);
    uploads.add_window(SlotId(s), 1);
  }
  auto const graph = std::move(call.graph).finish(0);
  auto const& blocks = small.blocks().blocks;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    CHECK(graph.block_events.contains({BlockId(b), BlockEventKind::upload}) != blocks[b].frozen);
  }
}

}  // namespace parameter_uploads_test
