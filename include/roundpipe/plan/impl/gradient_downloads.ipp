// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/gradient_downloads.hpp>
#include <roundpipe/plan/gradient_sums.hpp>
#include <roundpipe/plan/stage_chunks.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void GradientDownloads::add_window(SlotId id, std::size_t w) {
  auto const previous = call_.slot(id).previous;
  if (!in_windows() || !previous.valid()) {
    return;
  }
  for (auto const slot : call_.turn_of(call_.first_of_turn(previous))) {
    for (auto const& chunk : chunks_of(slot)) {
      if (chunk.window == w) {
        std::vector<ActionId> gates;
        if (chunk.gated) {
          gates = {call_.compute_before_window(id, w), call_.last_down(id, w)};
        }
        add_chunk(slot, chunk, gates, id);
      }
    }
  }
}

ROUNDPIPE_INLINE void GradientDownloads::finish_layer(SlotId id, std::size_t layer) {
  if (in_windows()) {
    return;
  }
  ActionId const gates[] = {call_.work_of(id).activation_down.back()};
  for (auto const& chunk : chunks_of(id)) {
    if (call_.input.blocks.use(chunk.uses.front()).layer.index() == layer) {
      add_chunk(id, chunk, gates, SlotId::none());
    }
  }
}

ROUNDPIPE_INLINE void GradientDownloads::finish_call() {
  for (std::size_t s = 0; s < call_.slots.size() && in_windows(); ++s) {
    SlotId const id(s);
    if (!call_.slot(id).next.valid()) {
      ActionId const gates[] = {call_.last_down(id, call_.micro_batches_per_round())};
      for (auto const& chunk : chunks_of(id)) {
        add_chunk(id, chunk, gates, SlotId::none());
      }
    }
  }
}

ROUNDPIPE_INLINE void GradientDownloads::add_chunk(SlotId id,
                                                   StageChunk const& chunk,
                                                   std::span<ActionId const> gates,
                                                   SlotId window_slot) {
  auto const& blocks = call_.input.blocks;
  auto& work = call_.work_of(id);
  auto action = call_.make_chunk(
      id, ActionKind::download_gradients, LaneKind::gradient_down, chunk, gates, window_slot);
  action.reads.push_back(work.gradients.value());
  for (auto const use : chunk.uses) {
    wait_for(action, work.last_backward[blocks.use(use).layer.index()]);
    if (blocks.block_of(use).sums_gradient) {
      action.writes.push_back(sums_.land(use, count_chunks(chunks_of(id), use), action));
    } else {
      auto const block = blocks.use(use).block;
      action.writes.push_back(block_buffer(BufferKind::gradient, block));
      call_.wait_for_rules(action, {block, BlockEventKind::gradient_write});
    }
  }
  auto const round = action.round;
  auto const added = call_.graph.add(std::move(action));
  if (window_slot.valid()) {
    call_.work_of(window_slot).chunk_down[chunk.window] = added;
  }
  for (auto const use : chunk.uses) {
    if (blocks.block_of(use).sums_gradient) {
      sums_.landed(use, round, added);
    } else {
      call_.graph.publish({blocks.use(use).block, BlockEventKind::gradient_write}, added);
    }
  }
}

}  // namespace detail

}  // namespace roundpipe
