// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/parameter_uploads.hpp>
#include <roundpipe/plan/stage_chunks.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE ParameterUploads::ParameterUploads(CallContext& call) : call_(call) {
  auto const goes_up = [](UsePlace const& place) { return place.holds(); };
  chunks_ = cut_stages(call, [&](auto const&, UsePlace const& place) { return goes_up(place); });
  auto const& blocks = call.input.blocks;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    auto const& stage = call.input.stages[i];
    if (!call.has_fixed_parameters()) {
      ordered_.push_back(in_layer_order(chunks_[i], blocks, stage));
      continue;
    }
    auto by_use = chunks_by_use(blocks, stage, goes_up);
    auto const last_reader = [&](StageChunk const& chunk) {
      return stage.last_reader(chunk.uses.front(), blocks);
    };
    std::stable_sort(by_use.begin(), by_use.end(), [&](StageChunk const& a, StageChunk const& b) {
      return last_reader(a) > last_reader(b);
    });
    ordered_.push_back(std::move(by_use));
  }
}

ROUNDPIPE_INLINE void ParameterUploads::add_own(SlotId id) {
  auto const previous = call_.slot(id).previous;
  if (previous.valid() && call_.has_fixed_parameters()) {
    // They stay. Compute waited for them in the first round, and is in order.
    call_.work_of(id).parameters = call_.work_of(previous).parameters;
    return;
  }
  if (!call_.has_parameter_windows() || !previous.valid()) {
    for (auto const& chunk : ordered_[call_.slot(id).stage.index()]) {
      add_chunk(id, chunk, {}, SlotId::none());
    }
    return;
  }
  for (auto const& chunk : chunks_of(id)) {
    if (waits_for_own_activation(chunk)) {
      auto const window_slot = call_.first_of_turn(previous);
      ActionId const gates[] = {call_.compute_before_window(window_slot, chunk.window),
                                call_.last_up(id, 1)};
      add_chunk(id, chunk, gates, window_slot);
    }
  }
}

ROUNDPIPE_INLINE void ParameterUploads::add_window(SlotId id, std::size_t w) {
  auto const next = call_.slot(id).next;
  if (!call_.has_parameter_windows() || !next.valid()) {
    return;
  }
  ActionId const gates[] = {call_.compute_before_window(id, w),
                            call_.last_up(id, uploaded_through(w))};
  for (auto const slot : call_.turn_of(next)) {
    for (auto const& chunk : chunks_of(slot)) {
      if (chunk.window == w && !waits_for_own_activation(chunk)) {
        add_chunk(slot,
                  chunk,
                  chunk.gated ? std::span<ActionId const>(gates) : std::span<ActionId const>(),
                  id);
      }
    }
  }
}

ROUNDPIPE_INLINE void ParameterUploads::add_chunk(SlotId id,
                                                  StageChunk const& chunk,
                                                  std::span<ActionId const> gates,
                                                  SlotId window_slot) {
  auto& work = call_.work_of(id);
  auto action = call_.make_chunk(
      id, ActionKind::upload_parameters, LaneKind::parameter_up, chunk, gates, window_slot);
  if (chunk.gated && !window_slot.valid()) {  // the windows of the call before, from their end
    auto const back = call_.micro_batches_per_round() - uploaded_through(chunk.window);
    action.lane_waits.push_back({LaneKind::activation_up, back});
  }
  for (auto const index : call_.parameter_rings(id, chunk.uses)) {
    work.parameters.resize(std::max(work.parameters.size(), index + 1));
    action.writes.push_back(call_.acquire_once(work.parameters[index],
                                               BufferKind::parameters,
                                               call_.input.buffering.parameters,
                                               action,
                                               index));
  }
  auto const blocks = trained_blocks_of(chunk);
  for (auto const block : blocks) {
    action.reads.push_back(block_buffer(BufferKind::master, block));
    if (call_.input.blocks.blocks[block.index()].is_sharded()) {
      action.reads.push_back(block_buffer(BufferKind::gathered, block));
    }
    call_.wait_for_rules(action, {block, BlockEventKind::upload});
  }
  auto const added = call_.graph.add(std::move(action));
  for (auto const use : chunk.uses) {
    work.uploaded[use.index()] = added;
  }
  for (auto const block : blocks) {
    call_.graph.publish({block, BlockEventKind::upload}, added);
  }
}

ROUNDPIPE_INLINE std::set<BlockId> ParameterUploads::trained_blocks_of(
    StageChunk const& chunk) const {
  auto const& all = call_.input.blocks;
  std::set<BlockId> blocks;
  for (auto const use : chunk.uses) {
    if (all.trains(use)) {
      blocks.insert(all.use(use).block);
    }
  }
  return blocks;
}

}  // namespace detail

}  // namespace roundpipe
