// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The part of a call's graph that brings parameters' gradients to the host, in windows.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/gradient_sums.hpp>
#include <roundpipe/plan/stage_chunks.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe::detail {

/// Adds the chunks of slots' gradients: with two entries on the device, in the windows of the slot
/// behind on that device, and for a device's last slot behind its activation copies. With one
/// entry, which the next slot waits for, each use's come down as soon as they are complete.
class GradientDownloads {
 public:
  /// Cuts the stages of \p call, which must outlive this. \throws Error as \ref cut_stage does.
  explicit GradientDownloads(CallContext& call) : call_(call), sums_(call) {
    if (in_windows()) {
      chunks_ = cut_stages(call, trains);
      return;
    }
    for (auto const& stage : call.input.stages) {
      chunks_.push_back(chunks_by_use(
          call.input.blocks, stage, [&](UsePlace const& place) { return trains(stage, place); }));
    }
  }

  /// Gradients of the device's previous slot, in window \p w of slot \p id: behind the activation
  /// copy that goes down in this window.
  void add_window(SlotId id, std::size_t w);

  /// What there is to add when the last backward of \p layer in slot \p id is: its gradients, where
  /// there are no windows. They go behind the activation copy of the last micro-batch if that is
  /// ready: gradients that are ready one after another keep the link, so the copy would wait for
  /// all of them, and with it the next stage for a boundary, or the caller for the loss.
  void finish_layer(SlotId id, std::size_t layer);

  /// What there is to add when all slots are: the gradients of the devices' last slots, in the
  /// slots' order, so that rounds are summed in theirs.
  void finish_call();

 private:
  [[nodiscard]] static bool trains(StageLayout const& stage, UsePlace const& place) noexcept {
    return stage.has_backward() && place.trains;
  }

  [[nodiscard]] bool in_windows() const noexcept { return call_.input.buffering.gradients >= 2; }

  [[nodiscard]] std::vector<StageChunk> const& chunks_of(SlotId id) const {
    return chunks_[call_.slot(id).stage.index()];
  }

  /// Adds a chunk of the gradients of slot \p id, to where the optimizer reads them or, where they
  /// are summed, to their landings. \p window_slot: in whose windows it comes down, or none.
  void add_chunk(SlotId id,
                 StageChunk const& chunk,
                 std::span<ActionId const> gates,
                 SlotId window_slot);

  CallContext& call_;
  GradientSums sums_;
  std::vector<std::vector<StageChunk>> chunks_;  // by stage; none where nothing is trained
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/gradient_downloads.ipp>
#endif
