// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where the host keeps what stages hand to later ones.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace roundpipe {

/// \brief The host's rings of checkpoints, boundary gradients and offloaded saves.
///
/// Boundaries between stages are small: what a layer makes of a micro-batch has a ring of two
/// entries, and one round's are written while the round before is read. Where every boundary is a
/// checkpoint, and of saves, there is too much for that. These have rings of one entry, which go
/// from hand to hand: a forward stage takes those whose content the backward stages of the round
/// before, as far as they have run by then, read last. Rings of one size are given away in the
/// order in which they became free. So the host holds what is alive at once: one round, or with
/// rounds that overlap, one round and a turn.
///
/// A gradient of a boundary is read by the next backward stage alone. All those of a micro-batch
/// share a ring of four entries (two, if there is one boundary): in each of two rounds, a stage
/// writes one while it reads the other.
class HostRings {
 public:
  static constexpr std::array kinds{
      BufferKind::checkpoint, BufferKind::boundary_gradient, BufferKind::offloaded_saves};

  HostRings() = default;
  /// \param stages Those of a training call, in execution order.
  /// \param micro_batches_per_round M_R
  /// \param rounds R
  /// \param resident What stays on devices; the host has no ring for it.
  HostRings(std::span<StageLayout const> stages,
            std::size_t micro_batches_per_round,
            std::size_t rounds,
            ResidentBoundaries const& resident = {});

  /// The ring for what \p layer makes of \p micro in \p round; one of \ref kinds.
  /// \throws Error (invalid_argument) when the plan keeps nothing of it.
  [[nodiscard]] Ring ring(BufferKind kind,
                          std::size_t layer,
                          MicroBatchId micro,
                          RoundId round) const;
  /// The layer that made what \p ring, of checkpoints or saves, holds in \p round.
  /// \throws Error (invalid_argument) when the ring holds nothing then.
  [[nodiscard]] std::size_t layer_of(Ring const& ring, RoundId round) const;

  /// How many entries a ring of \p kind has.
  [[nodiscard]] std::size_t entries(BufferKind kind) const { return pool(kind).entries; }
  /// The bytes of an entry, at capacity, of each ring of \p kind.
  [[nodiscard]] std::vector<Bytes> const& entry_bytes(BufferKind kind) const {
    return pool(kind).bytes;
  }
  /// The bytes of all rings of \p kind.
  [[nodiscard]] Bytes bytes(BufferKind kind) const;

 private:
  static constexpr auto none = static_cast<std::size_t>(-1);

  /// Of one round.
  struct RoundRings {
    std::vector<std::size_t> rings;   // by maker
    std::vector<std::size_t> makers;  // by ring
  };

  /// The rings of one kind.
  struct Pool {
    std::size_t entries = 2;
    std::vector<Bytes> bytes;        // of an entry, by ring
    std::vector<RoundRings> rounds;  // one, where all are the same
  };

  /// What a forward stage hands to a backward stage of the same round.
  struct Handed {
    std::size_t maker = 0;
    Bytes bytes = 0;
    std::size_t reader = 0;       // the backward stage
    std::vector<bool> in_rounds;  // empty: in all
  };

  [[nodiscard]] Pool const& pool(BufferKind kind) const { return pools_.at(kind); }
  [[nodiscard]] RoundRings const& of_round(BufferKind kind, RoundId round) const;

  /// The number of a *maker*: a layer and a micro-batch.
  [[nodiscard]] std::size_t maker(std::size_t layer, std::size_t micro_batch) const noexcept {
    return layer * micro_batches_ + micro_batch;
  }

  /// Says that \p maker has ring \p ring.
  static void give(RoundRings& round, std::size_t maker, std::size_t ring);

  /// Gives the checkpoint that \p layer makes of each micro-batch a ring of its own, unless it is
  /// \p resident.
  void keep_apart(std::size_t layer, Bytes bytes, ResidentBoundaries const& resident);
  /// Gives the gradients of the boundary behind \p layer the rings of all boundaries' gradients,
  /// unless they are \p resident.
  void take_turns(std::size_t layer, Bytes bytes, ResidentBoundaries const& resident);
  /// Gives rings of \p kind from hand to hand.
  /// \param handed By forward stage.
  void hand_on(BufferKind kind,
               std::vector<std::vector<Handed>> const& handed,
               ScheduleShape const& shape);

  std::size_t micro_batches_ = 1;  // M_R
  std::map<BufferKind, Pool> pools_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/host_rings.ipp>
#endif
