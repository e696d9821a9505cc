// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/gradient_downloads.hpp>

#include <roundpipe/plan/stage_compute.hpp>
#include <roundpipe/plan/streamed_graph.hpp>
#include <support/small_call.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace gradient_downloads_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// All compute and all gradients of \p small, and nothing else.
ActionGraph gradients_of(SmallCall const& small) {
  auto const input = small.input();
  detail::CallContext call(input);
  detail::SaveCopies saves(call);
  detail::StageCompute compute(call, saves);
  detail::GradientDownloads gradients(call);
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    for (std::size_t w = 0; w < call.micro_batches_per_round(); ++w) {
      gradients.add_window(SlotId(s), w);
      compute.add(SlotId(s), w, [&](Pass const& pass, bool) {
        if (pass.runs_backward() && w + 1 == call.micro_batches_per_round()) {
          gradients.finish_layer(SlotId(s), pass.layer);
        }
      });
    }
  }
  gradients.finish_call();
  return std::move(call.graph).finish(0);
}

std::vector<Action> chunks_of(ActionGraph const& graph) {
  std::vector<Action> chunks;
  std::ranges::copy_if(graph.actions, std::back_inserter(chunks), [](Action const& action) {
    return action.kind == ActionKind::download_gradients;
  });
  return chunks;
}

}  // namespace

TEST_CASE("trained gradients come down once for each slot, with windows and without") {
  for (std::size_t const entries : {1, 2}) {
    for (std::size_t devices = 1; devices <= 3; ++devices) {
      SmallCall const small(
          devices, 2, 2, {2, entries, 2}, {.dense = 2, .frozen_dense = devices - 1});
      std::vector<Bytes> downloaded(2 * SmallCall::stages);
      for (auto const& chunk : chunks_of(gradients_of(small))) {
        downloaded[chunk.slot.index()] += chunk.bytes;
      }
      for (std::size_t s = 0; s < downloaded.size(); ++s) {
        auto const stage = s % SmallCall::stages;
        CHECK(downloaded[s] == (stage < 2 ? 0 : small.parameter_bytes(stage, true)));
      }
    }
  }
}

TEST_CASE("a chunk comes down after the last backward of each of its layers") {
  for (std::size_t const entries : {1, 2}) {
    SmallCall const small(2, 2, 1, {2, entries, 2});
    auto const graph = gradients_of(small);
    for (auto const& chunk : chunks_of(graph)) {
      ActionId last;  // the latest of these backwards; on one lane it stands for all
      for (std::size_t i = 0; i < graph.actions.size(); ++i) {
        auto const& action = graph.actions[i];
        auto const holds = [&](BlockPiece const& piece) {
          return small.blocks().use(piece.use).layer == action.layer;
        };
        if (action.kind == ActionKind::backward && action.slot == chunk.slot && action.last &&
            std::ranges::any_of(chunk.pieces, holds)) {
          last = ActionId(i);
        }
      }
      REQUIRE(last.valid());
      CHECK(std::ranges::any_of(chunk.waits, [&](ActionId wait) {
        return wait >= last && graph.actions[wait.index()].lane.kind == LaneKind::compute;
      }));
    }
  }
}

TEST_CASE("with two entries chunks come down in the windows of the next slot, or at the end") {
  SmallCall const small(2, 3);
  auto const graph = gradients_of(small);
  for (auto const& chunk : chunks_of(graph)) {
    auto const behind = chunk.slot.index() + 2;
    CHECK(chunk.window_slot == (behind < SmallCall::stages ? SlotId(behind) : SlotId::none()));
  }
  auto const& last = graph.actions.back();
  CHECK(last.kind == ActionKind::download_gradients);
  CHECK(last.slot == SlotId(SmallCall::stages - 1));
}

TEST_CASE("with one entry chunks are issued behind their last backward, in no window") {
  SmallCall const small(1, 3, 1, {2, 1, 2});
  auto const graph = gradients_of(small);
  ActionId last_compute;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto const& action = graph.actions[i];
    if (action.lane.kind == LaneKind::compute) {
      last_compute = ActionId(i);
    }
    if (action.kind == ActionKind::download_gradients) {
      CHECK_FALSE(action.window_slot.valid());
      CHECK(std::ranges::count(action.waits, last_compute) == 1);
    }
  }
}

TEST_CASE("with one entry, gradients let a loss or boundary go first that is ready when they are") {
  SmallCall const small(1, 2, 1, {2, 1, 2});
  auto const graph = build_streamed_graph(small.input());
  std::size_t behind = 0;
  std::size_t ahead = 0;
  for (auto const& chunk : chunks_of(graph)) {
    auto const down =
        std::ranges::find_if(graph.actions.rbegin(), graph.actions.rend(), [&](auto const& other) {
          return other.kind == ActionKind::download_activation && other.slot == chunk.slot;
        });
    if (down == graph.actions.rend()) {
      continue;  // the last stage hands on nothing
    }
    auto const is_compute = [&](ActionId id) {
      return graph.actions[id.index()].lane.kind == LaneKind::compute;
    };
    auto const complete = std::ranges::find_if(chunk.waits, is_compute);
    auto const written = std::ranges::find_if(down->waits, is_compute);
    REQUIRE(complete != chunk.waits.end());
    REQUIRE(written != down->waits.end());
    auto const waits = std::ranges::any_of(
        chunk.waits, [&](ActionId id) { return &graph.actions[id.index()] == &*down; });
    CHECK(waits == !(*complete < *written));
    ++(waits ? behind : ahead);
  }
  CHECK(behind > 0);
  CHECK(ahead > 0);  // of layers whose backward comes before the boundary's gradient
}

TEST_CASE("gradients that are not sums arrive where the optimizer reads them, as an event") {
  SmallCall const small(1, 2);
  auto const graph = gradients_of(small);
  for (std::size_t b = 0; b < small.blocks().blocks.size(); ++b) {
    auto const& ids = graph.block_events.at({BlockId(b), BlockEventKind::gradient_write});
    for (auto const id : ids) {
      auto const& chunk = graph.actions[id.index()];
      CHECK(chunk.kind == ActionKind::download_gradients);
      CHECK(std::ranges::count(chunk.writes, block_buffer(BufferKind::gradient, BlockId(b))) == 1);
    }
  }
}

}  // namespace gradient_downloads_test
