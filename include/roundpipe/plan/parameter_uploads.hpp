// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The part of a call's graph that brings parameters to the devices, in windows.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/stage_chunks.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <vector>

namespace roundpipe::detail {

/// Adds the chunks of slots' parameters: with two entries on the device, in the windows of the slot
/// before on that device; else, and for a device's first slot, when the slot begins. A block that
/// stays goes up with the first slot of the device that holds it, for all slots there.
class ParameterUploads {
 public:
  /// Cuts the stages of \p call, which must outlive this. \throws Error as \ref cut_stage does.
  explicit ParameterUploads(CallContext& call);

  /// What is left of the parameters of slot \p id when its first activations go up: all of them
  /// where there were no windows to go up in, so that layers begin while the next ones' go up; else
  /// the chunks of the last window.
  void add_own(SlotId id);

  /// Parameters of the device's next turn, in window \p w of the turn that slot \p id begins:
  /// behind the activation copies that go up in this window, and the saves that it needs.
  void add_window(SlotId id, std::size_t w);

 private:
  /// Whether the parameters of slot \p id go up in the windows of the slot before.
  [[nodiscard]] bool has_windows(SlotId id) const {
    return call_.has_parameter_windows() && call_.slot(id).previous.valid();
  }
  /// What goes up for \p stage, \p brought of what stays, \p in_windows or else in order: at best
  /// that in which layers need it. What stays has no windows then. It goes up as soon as the call
  /// before is done with it, so it is in the order of a backward, and not in the way of what can
  /// go up sooner.
  [[nodiscard]] std::vector<StageChunk> cut(StageLayout const& stage,
                                            std::vector<BlockUseId> const& brought,
                                            bool in_windows) const;
  [[nodiscard]] std::vector<StageChunk> const& chunks_of(SlotId id) const {
    return cuts_[cut_of_slot_[id.index()]];
  }

  /// How many micro-batches' activations have gone up by the end of window \p w.
  [[nodiscard]] std::size_t uploaded_through(std::size_t w) const noexcept {
    return std::min(w + call_.input.buffering.activations, call_.micro_batches_per_round());
  }

  /// Whether \p chunk is one of the last window that waits for the first activation copy of the
  /// slot that it belongs to. With more micro-batches than devices that activation is there by
  /// then; with fewer, the chunk would stand exposed behind it.
  [[nodiscard]] bool waits_for_own_activation(StageChunk const& chunk) const noexcept {
    return chunk.gated && chunk.window + 1 == call_.micro_batches_per_round() &&
           call_.micro_batches_per_round() > call_.input.shape.devices;
  }

  /// Adds a chunk of the parameters of slot \p id. \p window_slot: in whose windows it goes up;
  /// none: outside of this call's, so that it goes up in those of the device's last slot before.
  void add_chunk(SlotId id,
                 StageChunk const& chunk,
                 std::span<ActionId const> gates,
                 SlotId window_slot);

  /// The blocks of \p chunk's pieces that change, each once: nothing orders the uploads of others.
  [[nodiscard]] std::set<BlockId> trained_blocks_of(StageChunk const& chunk) const;

  CallContext& call_;
  std::vector<std::vector<StageChunk>> cuts_;
  std::vector<std::size_t> cut_of_slot_;  // an index of cuts
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/parameter_uploads.ipp>
#endif
