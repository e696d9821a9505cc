// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the parts of a call's graph share: its input, its slots, and the graph so far.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_builder.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/dealt_rounds.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/plan/resident_rings.hpp>
#include <roundpipe/plan/stage_chunks.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {
inline ResidentBoundaries const no_resident_boundaries;
}

/// What a call's graph is built from. The references must live until the graph is built.
struct StreamedGraphInput {
  ParameterBlocks const& blocks;
  std::span<StageLayout const> stages;  ///< In execution order; the last one of an evaluation is
                                        ///< of kind `evaluate`.
  ScheduleShape shape;
  DeviceTasks const& tasks;
  std::size_t advance = 0;
  HostRings const& rings;  ///< Of the planned call.
  Buffering buffering;
  ChunkFunction chunks;
  /// What an event waits for (`EventProtocol::before`).
  std::function<std::vector<BlockEvent>(BlockEvent)> before;
  DealtRounds deal{};  ///< The rounds of all ranks; `shape` has those of this one.
  ResidentBoundaries const& resident = detail::no_resident_boundaries;
  ResidentBoundaries const& sent = detail::no_resident_boundaries;
};

namespace detail {

/// What a slot has brought into the graph so far; lists are by micro-batch.
struct SlotWork {
  SlotWork(ParameterBlocks const& blocks, std::size_t micro_batches_per_round)
      : entries_in(micro_batches_per_round),
        entries_out(micro_batches_per_round),
        activation_up(micro_batches_per_round),
        gradient_up(micro_batches_per_round),
        save_up(micro_batches_per_round),
        last_compute(micro_batches_per_round),
        activation_down(micro_batches_per_round),
        chunk_down(micro_batches_per_round),
        uploaded(blocks.uses.size()),
        last_backward(blocks.layer_uses.size()) {}

  std::optional<Buffer> parameters;  // but those that stay
  std::optional<Buffer> gradients;
  std::vector<std::optional<Buffer>> entries_in;
  std::vector<std::optional<Buffer>> entries_out;
  std::vector<ActionId> activation_up;
  std::vector<ActionId> gradient_up;
  std::vector<ActionId> save_up;
  std::vector<ActionId> last_compute;
  std::vector<ActionId> activation_down;
  std::vector<ActionId> chunk_down;     // in the windows of the turn that the slot begins
  std::vector<ActionId> uploaded;       // by use: the last chunk with a piece of it
  std::vector<ActionId> last_backward;  // by layer, of the last micro-batch
};

/// A block of parameters that stays on a device.
struct ResidentBlock {
  std::optional<Buffer> place;
  ActionId uploaded;  // the last chunk with a piece of it
};

/// Makes \p action wait for \p id, if that is any.
void wait_for(Action& action, ActionId id);

/// A call's graph under construction.
struct CallContext {
  StreamedGraphInput const& input;
  std::vector<Slot> slots;
  std::vector<SlotWork> work;  // by slot
  ResidentRings resident;
  GraphBuilder graph;

  /// \throws Error as \ref order_slots does. \p call must outlive the context.
  explicit CallContext(StreamedGraphInput const& call)
      : input(call),
        slots(order_slots(call.shape, call.tasks)),
        work(slots.size(), SlotWork(call.blocks, call.shape.micro_batches_per_round)),
        resident(call.stages, slots, call.shape.micro_batches_per_round, call.resident, call.sent),
        graph(call.shape.devices) {}

  [[nodiscard]] std::size_t micro_batches_per_round() const noexcept {
    return input.shape.micro_batches_per_round;
  }
  [[nodiscard]] Slot const& slot(SlotId id) const { return slots[id.index()]; }
  [[nodiscard]] SlotWork& work_of(SlotId id) { return work[id.index()]; }
  [[nodiscard]] StageLayout const& stage_of(SlotId id) const {
    return input.stages[slot(id).stage.index()];
  }

  /// An action of slot \p id for micro-batch (or window) \p micro, without waits and buffers.
  [[nodiscard]] Action make(SlotId id, ActionKind kind, LaneKind lane, std::size_t micro) const;

  /// The copy of \p chunk, which waits for those of \p gates that there are. \p window_slot: in
  /// whose windows it goes, or none.
  [[nodiscard]] Action make_chunk(SlotId id,
                                  ActionKind kind,
                                  LaneKind lane,
                                  StageChunk const& chunk,
                                  std::span<ActionId const> gates,
                                  SlotId window_slot) const;

  /// Where what \p layer makes of the micro-batch of \p action goes.
  [[nodiscard]] BoundaryWay const& way(Action const& action,
                                       BufferKind kind,
                                       std::size_t layer) const {
    return resident.way({kind, layer, action.micro_batch.index()}, action.round);
  }
  /// Makes \p action write the entry of \p kind for what \p layer makes of its micro-batch: that
  /// of \p ring, of a device, or without one the host's.
  /// \throws Error (unsupported) when the rounds of a stage are out of order.
  Buffer write_kept(Action& action,
                    BufferKind kind,
                    std::size_t layer,
                    std::optional<Ring> const& ring = {});
  /// Makes \p action read that entry, behind the action that writes it.
  /// \throws Error (unsupported) when a later round has written it already.
  Buffer read_kept(Action& action,
                   BufferKind kind,
                   std::size_t layer,
                   std::optional<Ring> const& ring = {}) const;

  /// Makes \p action wait for what the protocol says of \p event.
  void wait_for_rules(Action& action, BlockEvent event) const;

  /// Whether all slots run one stage, whose parameters stay.
  [[nodiscard]] bool has_fixed_parameters() const noexcept {
    return input.stages.size() == 1 && input.buffering.parameters == 1;
  }
  /// Whether parameters go up in the windows of the slot before, into an entry of their own.
  [[nodiscard]] bool has_parameter_windows() const noexcept {
    return input.buffering.parameters >= 2;
  }
  /// The last chunk of slot \p id's parameters so far, or none.
  [[nodiscard]] ActionId last_parameters_up(SlotId id) const;
  /// The block of \p use, which stays on the device of slot \p id.
  [[nodiscard]] ResidentBlock& resident_block(SlotId id, BlockUseId use) {
    return resident_blocks_[{slot(id).device, input.blocks.use(use).block}];
  }
  /// The index of the rings that slot \p id uses on its device.
  [[nodiscard]] std::size_t ring_index(SlotId id) const {
    return stage_of(id).has_own_rings() ? forward_ring : 0;
  }

  /// \p entry of ring \p index of \p count on the device of \p action, which acquires it if it is
  /// the first to need it.
  Buffer acquire_once(std::optional<Buffer>& entry,
                      BufferKind kind,
                      std::size_t count,
                      Action& action,
                      std::size_t index);

  /// The slots that take turns with \p id, which is the first of them, itself included.
  [[nodiscard]] std::vector<SlotId> turn_of(SlotId id) const {
    auto const partner = slot(id).partner;
    return partner.valid() ? std::vector{id, partner} : std::vector{id};
  }
  /// \p id, or the one that takes turns with it and comes first.
  [[nodiscard]] SlotId first_of_turn(SlotId id) const {
    auto const partner = slot(id).partner;
    return partner.valid() ? std::min(id, partner) : id;
  }

  /// The end of the compute of the micro-batch that stands \p back (at least 1) before micro-batch
  /// \p m of slot \p id on its device, but for slots that take turns with that; none before the
  /// call.
  [[nodiscard]] ActionId compute_before(SlotId id, std::size_t m, std::size_t back) const;

  /// The end of the compute before window \p w of the turn that \p first begins; none before the
  /// call.
  [[nodiscard]] ActionId compute_before_window(SlotId first, std::size_t w) const {
    return compute_before(turn_of(first).back(), w, 1);
  }

  /// The last activation copy down that is due in window \p w of slot \p id, and of the one that
  /// takes turns with it, or before; or none. Slots at the end of the backward hand on nothing.
  [[nodiscard]] ActionId last_down(SlotId id, std::size_t w) const {
    CopiesOfSlot const down[] = {&SlotWork::activation_down};
    return last_of(id, w, down);
  }

  /// The last activation copy up for the first \p m micro-batches of slot \p id, and of the one
  /// that takes turns with it, or before; or none.
  [[nodiscard]] ActionId last_up(SlotId id, std::size_t m) const {
    CopiesOfSlot const up[] = {&SlotWork::activation_up, &SlotWork::gradient_up};
    return last_of(id, m, up);
  }

  /// The last save up so far that these micro-batches need, likewise.
  [[nodiscard]] ActionId last_save_up(SlotId id, std::size_t m) const {
    CopiesOfSlot const up[] = {&SlotWork::save_up};
    return last_of(id, m, up);
  }

  /// The last chunk down of the first \p w windows of the turn of slot \p id, or of the turns
  /// before; or none.
  [[nodiscard]] ActionId last_chunk_down(SlotId id, std::size_t w) const {
    CopiesOfSlot const down[] = {&SlotWork::chunk_down};
    return last_of(id, w, down);
  }

 private:
  using CopiesOfSlot = std::vector<ActionId> SlotWork::*;

  /// The last of \p copies for the first \p m micro-batches of the turn of slot \p id or, where
  /// they need none, of the turns before.
  [[nodiscard]] ActionId last_of(SlotId id,
                                 std::size_t m,
                                 std::span<CopiesOfSlot const> copies) const;

  /// What an entry of a ring of checkpoints, gradients or saves holds: what a layer made in a
  /// round.
  struct Written {
    std::size_t layer = 0;
    RoundId round;
    MicroBatchId micro_batch;

    friend constexpr bool operator==(Written const&, Written const&) noexcept = default;
  };

  struct KeptRing {
    Ring ring;
    std::size_t entries = 1;
  };

  /// \p ring, or without one the host's for what \p layer makes of the micro-batch of \p action.
  [[nodiscard]] KeptRing kept_ring(Action const& action,
                                   BufferKind kind,
                                   std::size_t layer,
                                   std::optional<Ring> const& ring) const;

  std::map<Ring, std::vector<Written>> written_;  // of such rings, by acquisition
  std::map<std::pair<DeviceId, BlockId>, ResidentBlock> resident_blocks_;
};

/// For each stage of \p call: its chunks of those uses that \p wanted(stage, place) takes.
template <class F>
[[nodiscard]] std::vector<std::vector<StageChunk>> cut_stages(CallContext const& call, F&& wanted) {
  std::vector<std::vector<StageChunk>> chunks;
  for (auto const& stage : call.input.stages) {
    chunks.push_back(cut_stage(call.input.blocks,
                               stage,
                               call.micro_batches_per_round(),
                               call.input.chunks,
                               [&](UsePlace const& place) { return wanted(stage, place); }));
  }
  return chunks;
}

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/call_context.ipp>
#endif
