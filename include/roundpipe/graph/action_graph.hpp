// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The graph of actions: everything that one call does, on which lane, and after which
/// actions.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/protocol_check.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// What an action does.
enum class ActionKind : std::uint8_t {
  upload_parameters,    ///< A chunk of a stage's parameters, to the device.
  upload_activation,    ///< The input boundary and side inputs of a stage for a micro-batch.
  upload_gradient,      ///< The gradient of a stage's output boundary for a micro-batch.
  forward,              ///< One layer, one micro-batch; saves nothing.
  recompute,            ///< The saving forward of one layer, where it is the first one, too.
  backward,             ///< The backward of one layer.
  input_gradient,       ///< The half of a split backward that the previous layer waits for.
  weight_gradient,      ///< The other half.
  download_activation,  ///< Boundaries, loss and results of a micro-batch, to the host.
  send_boundary,        ///< A boundary of a micro-batch, or its gradient, to another device.
  upload_save,          ///< What one layer saved for a micro-batch, back from the host.
  download_save,        ///< The same, to the host.
  download_gradients,   ///< A chunk of a stage's rounded parameter gradients.
  accumulate_gradient,  ///< Adds an arrived gradient of a block to its sum on the host.
  reduce_gradient,      ///< Adds the arrived gradients of a block, of all ranks, to its sum.
  gradient_norm,        ///< The sum of squares of a block's gradient.
  optimizer_step,       ///< The update of a block's optimizer copy, often of its master copy too.
  copy_parameters,      ///< P copy of a block: optimizer copy to master copy.
  gather_weights,       ///< Brings the shards of other ranks to a block's master copy.
};

[[nodiscard]] constexpr char const* name_of(ActionKind kind) noexcept {
  constexpr std::array names{"upload parameters",
                             "upload activation",
                             "upload gradient",
                             "forward",
                             "recompute",
                             "backward",
                             "input gradient",
                             "weight gradient",
                             "download activation",
                             "send boundary",
                             "upload save",
                             "download save",
                             "download gradients",
                             "accumulate gradient",
                             "reduce gradient",
                             "gradient norm",
                             "optimizer step",
                             "copy parameters",
                             "gather weights"};
  auto const index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : "own action";
}

/// What a buffer holds. The first nine are rings: entries are used in turn, across calls.
enum class BufferKind : std::uint8_t {
  parameters,         ///< Device: a slot's transient copy.
  gradients,          ///< Device: a slot's accumulated and rounded gradients.
  activations_in,     ///< Device: a micro-batch's input boundary, side inputs, output gradient.
  activations_out,    ///< Device: a micro-batch's output boundaries or input gradient, loss.
  saves,              ///< Device: what a layer saved for a micro-batch, to the host or from there.
  checkpoint,         ///< Host, or a device that keeps it: a boundary of a micro-batch.
  boundary_gradient,  ///< The same of the gradient of a boundary.
  offloaded_saves,    ///< Host: what a layer saved for a micro-batch.
  landing,            ///< Host: the rounded gradient of a block use.
  master,             ///< Host: a block in the parameters' declared types; one copy or two. Of a
                      ///< block that ranks share: the own shard.
  gathered,           ///< Host: the shards of other ranks in a master copy.
  optimizer_copy,     ///< Host: the optimizer's own weights and states of a block.
  gradient,           ///< Host: a block's gradient, or its sum; one buffer or two.
  norm,               ///< Host: the sum of squares of a block's gradient.
  side_input,         ///< Host: the batch.
  loss,               ///< Host: a micro-batch's loss.
  results,            ///< Host: a micro-batch's results.
};

inline constexpr std::size_t device_ring_count = 5;

/// The index of a device's rings for forward stages, where these have rings of their own.
inline constexpr std::size_t forward_ring = 1;

/// A ring of buffers. \c index distinguishes rings of one kind: on a device 0 or \ref forward_ring,
/// for a block of parameters that stays there \ref resident_ring, for checkpoints, boundary
/// gradients and offloaded saves the number that `HostRings` gives them (on a device:
/// `ResidentRings`), for landings that of `LandingRings`.
struct Ring {
  BufferKind kind = BufferKind::parameters;
  DeviceId device;  ///< None for host rings.
  std::size_t index = 0;

  friend constexpr auto operator<=>(Ring const&, Ring const&) noexcept = default;
  friend constexpr bool operator==(Ring const&, Ring const&) noexcept = default;
};

/// The index of the ring of parameters whose one entry is the place of \p block on a device.
[[nodiscard]] constexpr std::size_t resident_ring(BlockId block) noexcept {
  return forward_ring + 1 + block.index();
}
/// The block whose place \p ring is; none for all other rings.
[[nodiscard]] constexpr BlockId resident_block(Ring const& ring) noexcept {
  return ring.kind == BufferKind::parameters && ring.index > forward_ring
             ? BlockId(ring.index - resident_ring(BlockId(0)))
             : BlockId::none();
}

/// One entry of a ring, or (sequence 0) a plain buffer; \c index then is the block or micro-batch.
/// The iteration decides which copy of a master copy or gradient is meant, see \ref GraphRole.
struct Buffer {
  Ring ring;
  /// The number of the entry in the order of acquisition, counted from the beginning of the call.
  std::size_t sequence = 0;

  friend constexpr auto operator<=>(Buffer const&, Buffer const&) noexcept = default;
  friend constexpr bool operator==(Buffer const&, Buffer const&) noexcept = default;
};

/// Whether \p buffer is a boundary that a device keeps.
[[nodiscard]] constexpr bool is_resident(Buffer const& buffer) noexcept {
  return buffer.ring.device.valid() && (buffer.ring.kind == BufferKind::checkpoint ||
                                        buffer.ring.kind == BufferKind::boundary_gradient);
}

/// The buffer of kind \p kind that the host holds for \p block.
[[nodiscard]] constexpr Buffer block_buffer(BufferKind kind, BlockId block) noexcept {
  return {{kind, DeviceId::none(), block.index()}, 0};
}

/// Consecutive bytes of a tensor of a use's block, in its declared type.
struct BlockPiece {
  BlockUseId use;
  std::size_t tensor = 0;
  Bytes offset = 0;  ///< From the tensor's beginning.
  Bytes bytes = 0;
};

/// The last copies on a lane of the same device in earlier graphs: everything up to the last slot,
/// except its last \c back micro-batches.
struct LaneWait {
  LaneKind kind = LaneKind::activation_up;
  std::size_t back = 0;
};

/// One thing that happens on one lane.
struct Action {
  ActionKind kind = ActionKind::forward;
  Lane lane;
  SlotId slot;  ///< The slot that the action serves; none in step graphs.
  StageId stage;
  RoundId round;
  MicroBatchId micro_batch;  ///< Within the round; for parameter and gradient chunks: the window.
  LayerId layer;             ///< Of compute actions, saves, and what is sent to other devices.
  BlockId block;             ///< Of the host's actions.
  BlockUseId use;            ///< Of `accumulate_gradient`.
  /// Of compute and of copies of saves: the save level of what the host keeps of the layer.
  std::size_t save_level = 0;
  bool hands_on_output = true;  ///< Forward and recompute: whether anyone reads the output.
  /// Of chunks: whether every activation copy that is due before, or in, the chunk's window goes
  /// first.
  bool gated = false;
  /// Of gated chunks: the slot whose window \c micro_batch the chunk uses. None: outside of the
  /// call's windows, before its first or after its last slot.
  SlotId window_slot;
  Bytes bytes = 0;     ///< Copied at capacity; by actions of the host, read and written.
  Bytes received = 0;  ///< Of reductions and gathers: what comes from other ranks.
  /// Compute: the slot's first micro-batch; accumulate and reduce: the block's first of the call.
  bool first = false;
  bool last = false;  ///< Compute: the slot's last micro-batch.

  std::vector<Buffer> reads;
  std::vector<Buffer> writes;
  std::vector<BlockPiece> pieces;  ///< Of parameter and gradient chunks.
  std::vector<BlockUseId> uses;    ///< Of compute actions: the block uses that they touch.

  std::vector<ActionId> waits;          ///< Actions of this graph, all before this action.
  std::vector<BlockEvent> block_waits;  ///< Events of earlier graphs.
  std::vector<Buffer> ring_waits;       ///< Entries that actions of earlier graphs may still use.
  std::vector<LaneWait> lane_waits;     ///< Copies of earlier graphs that go first.
};

/// The name of an action in errors, traces and checks, for example "backward of layer 3, stage 5,
/// round 0, micro-batch 1". \p name: of its layer, or what to call its block; may be empty.
[[nodiscard]] std::string to_string(Action const& action, std::string const& name = {});

/// How a graph uses one ring.
struct RingUse {
  std::size_t count = 1;         ///< Entries of the ring.
  std::size_t acquisitions = 0;  ///< By this graph.
  /// For each acquisition: the actions that write or read the entry.
  std::vector<std::vector<ActionId>> users;
};

/// The role of a graph, which says how the graph uses doubled copies and buffers.
/// With s steps issued before the graph and iteration t = s + 1: a training call writes gradient
/// buffer t mod n, and its uploads read W_v, the weights of the newest step that the staleness
/// allows, or that a flush has brought, from master copy v mod m. An evaluation reads W_s where m
/// is 2, else W_v. A step reads gradient buffer t mod n and writes W_t. A P copy writes W_s.
enum class GraphRole : std::uint8_t { call, evaluation, step, flush };

/// The actions of one call, or of one step, in issue order: every wait points backwards.
/// Devices are relative: device d is device (g0 + d) mod N when the graph runs, and g0 then moves
/// by \c advance. Rings are relative, too: entry sequence s is s entries after the ring's current
/// position.
struct ActionGraph {
  GraphRole role = GraphRole::call;
  std::vector<Action> actions;
  std::size_t devices = 0;
  std::size_t advance = 0;
  std::map<Ring, RingUse> rings;
  /// For each event: the actions that later graphs wait for.
  std::map<BlockEvent, std::vector<ActionId>> block_events;
  int staleness = 0;
  std::size_t master_copies = 1;     ///< m
  std::size_t gradient_buffers = 1;  ///< n
};

/// Sets the role and the copies of \p graph under \p protocol.
/// \throws Error (invalid_argument) as \ref check of the protocol does.
template <EventProtocol P>
void set_role(ActionGraph& graph, GraphRole role, P const& protocol) {
  check(protocol);
  graph.role = role;
  graph.staleness = protocol.staleness();
  graph.master_copies = protocol.master_copies();
  graph.gradient_buffers = protocol.gradient_buffers();
}

/// The entry of \p kind that \p action writes or reads, or null.
[[nodiscard]] Buffer const* find_buffer(Action const& action, BufferKind kind) noexcept;

/// Of \p ids, which name \p actions in any order: the latest on each lane, ascending.
[[nodiscard]] std::vector<ActionId> latest_of_lanes(std::span<Action const> actions,
                                                    std::vector<ActionId> ids);

}  // namespace roundpipe

#ifdef ROUNDPIPE_COMPILED
extern template class std::vector<roundpipe::Action>;
#endif

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/action_graph.ipp>
#endif
