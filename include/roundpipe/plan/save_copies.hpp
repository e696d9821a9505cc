// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The part of a call's graph that takes saved activations to the host and back.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/call_context.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// Adds the copies of saves. A device's saves take the entries of one ring in turn, each in the
/// order in which compute needs it, so a save goes up as early as the entries before it are free.
///
/// A save is large, and a link that has begun with one stream's copies may go on with them. So a
/// save waits for the activations that are due before it, as chunks do; on its way down for the
/// chunks of the windows before; and a slot's first save for the slot's parameters, without which
/// nobody can use it. Chunks of parameters wait for the saves that are due in their window.
class SaveCopies {
 public:
  /// \p call must outlive this.
  explicit SaveCopies(CallContext& call) : call_(call) {}

  /// Adds the first uploads of slot \p id, as many as there are entries.
  void begin_slot(SlotId id);

  /// Makes \p action, which computes \p pass, use the entry of its save, if it has one.
  void use_entry(Action& action, Pass const& pass);

  /// Compute \p id of \p pass is added: its save goes down, or makes room for another. The save of
  /// the stage's last layer is ready when the micro-batch's boundaries are, and goes behind them:
  /// \ref finish_micro_batch adds it.
  void finish_pass(ActionId id, Pass const& pass);

  /// All passes of micro-batch \p m of slot \p id are added, and its boundaries.
  void finish_micro_batch(SlotId id, std::size_t m);

 private:
  /// What a layer saves of a micro-batch.
  struct Save {
    std::size_t layer = 0;
    std::size_t micro_batch = 0;
    std::size_t level = 0;
    Buffer entry{};
    ActionId made{};  ///< The compute that writes the entry, or the upload.
  };

  /// Whether \p pass is the first to read a save. A recomputation is; its backward follows at once.
  [[nodiscard]] static bool is_first_reader(Pass const& pass) noexcept {
    return pass.reads.has(PassData::kept) && !pass.reads.has(PassData::activations);
  }

  [[nodiscard]] Action make(SlotId id, ActionKind kind, LaneKind lane, Save const& save) const;

  /// Adds the next upload of the slot, if there is one left, behind the activations of micro-batch
  /// \p m.
  void add_up(SlotId id, std::size_t m);

  /// Adds the download of \p save behind the boundaries and chunks that go down before window \p w.
  void add_down(SlotId id, Save const& save, std::size_t w);

  CallContext& call_;
  std::vector<Save> due_;          // what the slot needs, in order
  std::size_t uploaded_ = 0;       // of these: have an upload
  std::size_t used_ = 0;           // and compute that uses it
  std::optional<Buffer> written_;  // by the compute that is being added
  std::optional<Save> last_;       // of the stage's last layer, until its micro-batch is finished
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/save_copies.ipp>
#endif
