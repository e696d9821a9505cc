// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_builder.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/stage_chunks.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void wait_for(Action& action, ActionId id) {
  if (id.valid()) {
    action.waits.push_back(id);
  }
}

ROUNDPIPE_INLINE ActionId CallContext::last_parameters_up(SlotId id) const {
  auto last = ActionId::none();
  for (auto const chunk : work[id.index()].uploaded) {
    if (chunk.valid() && (!last.valid() || last < chunk)) {
      last = chunk;
    }
  }
  return last;
}

ROUNDPIPE_INLINE Action CallContext::make(SlotId id,
                                          ActionKind kind,
                                          LaneKind lane,
                                          std::size_t micro) const {
  Action action;
  action.kind = kind;
  action.lane = {lane, slot(id).device};
  action.slot = id;
  action.stage = slot(id).stage;
  action.round = slot(id).round;
  action.micro_batch = MicroBatchId(micro);
  return action;
}

ROUNDPIPE_INLINE Action CallContext::make_chunk(SlotId id,
                                                ActionKind kind,
                                                LaneKind lane,
                                                StageChunk const& chunk,
                                                std::span<ActionId const> gates,
                                                SlotId window_slot) const {
  auto action = make(id, kind, lane, chunk.window);
  action.pieces = chunk.pieces;
  action.bytes = chunk.bytes;
  action.gated = chunk.gated;
  action.window_slot = window_slot;
  for (auto const gate : gates) {
    wait_for(action, gate);
  }
  return action;
}

ROUNDPIPE_INLINE CallContext::KeptRing CallContext::kept_ring(
    Action const& action,
    BufferKind kind,
    std::size_t layer,
    std::optional<Ring> const& ring) const {
  if (ring) {
    return {*ring, 1};
  }
  return {input.rings.ring(kind, layer, action.micro_batch, action.round),
          input.rings.entries(kind)};
}

ROUNDPIPE_INLINE Buffer CallContext::write_kept(Action& action,
                                                BufferKind kind,
                                                std::size_t layer,
                                                std::optional<Ring> const& ring) {
  auto const kept = kept_ring(action, kind, layer, ring);
  auto const buffer = graph.acquire(kept.ring, kept.entries, action);
  auto& written = written_[kept.ring];
  auto const before = std::find_if(
      written.rbegin(), written.rend(), [&](Written const& each) { return each.layer == layer; });
  if (before != written.rend() && std::pair(before->round, before->micro_batch) >=
                                      std::pair(action.round, action.micro_batch)) {
    throw broken_rule("Schedule::tasks",
                      4,
                      "stage " + std::to_string(action.stage.value()) + " runs round " +
                          std::to_string(action.round.value()) + " after round " +
                          std::to_string(before->round.value()),
                      Errc::unsupported);
  }
  written.push_back({layer, action.round, action.micro_batch});
  action.writes.push_back(buffer);
  return buffer;
}

ROUNDPIPE_INLINE Buffer CallContext::read_kept(Action& action,
                                               BufferKind kind,
                                               std::size_t layer,
                                               std::optional<Ring> const& ring) const {
  auto const kept = kept_ring(action, kind, layer, ring);
  auto const& written = written_.at(kept.ring);
  auto const found =
      std::find(written.begin(), written.end(), Written{layer, action.round, action.micro_batch});
  Buffer const buffer{kept.ring, static_cast<std::size_t>(found - written.begin())};
  auto const overwritten_by = buffer.sequence + kept.entries;
  if (overwritten_by < written.size()) {
    throw broken_rule("Schedule::tasks",
                      4,
                      "stage " + std::to_string(action.stage.value()) + " reads what round " +
                          std::to_string(action.round.value()) + " keeps when round " +
                          std::to_string(written[overwritten_by].round.value()) +
                          " has overwritten it",
                      Errc::unsupported);
  }
  wait_for(action, graph.users(buffer).front());
  action.reads.push_back(buffer);
  return buffer;
}

ROUNDPIPE_INLINE void CallContext::wait_for_rules(Action& action, BlockEvent event) const {
  auto const events = input.before(event);
  action.block_waits.insert(action.block_waits.end(), events.begin(), events.end());
}

ROUNDPIPE_INLINE Buffer CallContext::acquire_once(std::optional<Buffer>& entry,
                                                  BufferKind kind,
                                                  std::size_t count,
                                                  Action& action,
                                                  std::size_t index) {
  if (!entry) {
    entry = graph.acquire({kind, action.lane.device, index}, count, action);
  }
  return *entry;
}

ROUNDPIPE_INLINE ActionId CallContext::compute_before(SlotId id,
                                                      std::size_t m,
                                                      std::size_t back) const {
  while (id.valid() && m < back) {
    back -= m;
    m = micro_batches_per_round();
    id = slot(id).previous;
  }
  return id.valid() ? work[id.index()].last_compute[m - back] : ActionId::none();
}

ROUNDPIPE_INLINE ActionId CallContext::last_of(SlotId id,
                                               std::size_t m,
                                               std::span<CopiesOfSlot const> copies) const {
  ActionId last;
  while (id.valid() && !last.valid()) {
    auto const first = first_of_turn(id);
    for (auto const each : turn_of(first)) {
      for (auto const of_slot : copies) {
        auto const& ids = work[each.index()].*of_slot;
        auto n = m;
        while (n > 0 && !ids[n - 1].valid()) {
          --n;
        }
        if (n > 0 && (!last.valid() || last < ids[n - 1])) {
          last = ids[n - 1];
        }
      }
    }
    id = slot(first).previous;
    m = micro_batches_per_round();
  }
  return last;
}

}  // namespace detail

}  // namespace roundpipe
