// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/parameter_uploads.hpp>
#include <roundpipe/plan/stage_chunks.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE ParameterUploads::ParameterUploads(CallContext& call) : call_(call) {
  std::map<std::tuple<StageId, std::vector<BlockUseId>, bool>, std::size_t> known;
  std::set<std::pair<DeviceId, BlockId>> there;
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    SlotId const id(s);
    auto const& stage = call.stage_of(id);
    std::vector<BlockUseId> brought;
    for (auto const& place : stage.uses) {
      if (place.stays && place.holds() &&
          there.emplace(call.slot(id).device, call.input.blocks.use(place.use).block).second) {
        brought.push_back(place.use);
      }
    }
    auto const [found, is_new] =
        known.try_emplace({call.slot(id).stage, brought, has_windows(id)}, cuts_.size());
    if (is_new) {
      cuts_.push_back(cut(stage, brought, has_windows(id)));
    }
    cut_of_slot_.push_back(found->second);
  }
}

ROUNDPIPE_INLINE std::vector<StageChunk> ParameterUploads::cut(
    StageLayout const& stage, std::vector<BlockUseId> const& brought, bool in_windows) const {
  auto const& blocks = call_.input.blocks;
  auto const stays = [&](UsePlace const& place) {
    return std::find(brought.begin(), brought.end(), place.use) != brought.end();
  };
  auto const of_slot = [](UsePlace const& place) { return place.holds() && !place.stays; };
  auto const cut_all = [&](std::function<bool(UsePlace const&)> const& wanted) {
    return cut_stage(blocks, stage, call_.micro_batches_per_round(), call_.input.chunks, wanted);
  };
  if (in_windows) {
    return cut_all([&](UsePlace const& place) { return of_slot(place) || stays(place); });
  }
  auto of_call = chunks_by_use(blocks, stage, stays);
  auto const last_reader = [&](StageChunk const& chunk) {
    return stage.last_reader(chunk.uses.front(), blocks);
  };
  std::stable_sort(of_call.begin(), of_call.end(), [&](StageChunk const& a, StageChunk const& b) {
    return last_reader(a) > last_reader(b);
  });
  auto ordered = in_layer_order(cut_all(of_slot), blocks, stage);
  auto const at = call_.has_parameter_windows() ? ordered.end() : ordered.begin();
  ordered.insert(at, of_call.begin(), of_call.end());
  return ordered;
}

ROUNDPIPE_INLINE void ParameterUploads::add_own(SlotId id) {
  if (!has_windows(id)) {
    for (auto const& chunk : chunks_of(id)) {
      add_chunk(id, chunk, {}, SlotId::none());
    }
    return;
  }
  for (auto const& chunk : chunks_of(id)) {
    if (waits_for_own_activation(chunk)) {
      auto const window_slot = call_.first_of_turn(call_.slot(id).previous);
      ActionId const gates[] = {call_.compute_before_window(window_slot, chunk.window),
                                call_.last_up(id, 1),
                                call_.last_save_up(window_slot, chunk.window + 1)};
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
                            call_.last_up(id, uploaded_through(w)),
                            call_.last_save_up(id, w + 1)};
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
  auto const& stage = call_.stage_of(id);
  auto const held_by_device = [&](BlockUseId use) -> ResidentBlock* {
    return stage.place_of(use).stays ? &call_.resident_block(id, use) : nullptr;
  };
  for (auto const use : chunk.uses) {
    auto* const resident = held_by_device(use);
    auto const buffer = call_.acquire_once(
        resident ? resident->place : work.parameters,
        BufferKind::parameters,
        resident ? 1 : call_.input.buffering.parameters,
        action,
        resident ? resident_ring(call_.input.blocks.use(use).block) : call_.ring_index(id));
    if (std::find(action.writes.begin(), action.writes.end(), buffer) == action.writes.end()) {
      action.writes.push_back(buffer);
    }
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
    if (auto* const resident = held_by_device(use)) {
      resident->uploaded = added;
    }
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
