// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where everything that a stage touches lies within its entries of the device's arenas.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/stage_region.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/model/working_set.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace roundpipe {

/// Where a layer of a stage finds its tensors.
struct LayerPlaces {
  BoundaryPlace input;
  BoundaryPlace output;
  Place side_inputs;
  Place saved;  ///< Behind what the host keeps of it, which lies in an entry of \c saves.
  Place workspace;
  BoundaryPlace output_gradient;
  BoundaryPlace input_gradient;
};

/// Blocks of parameters that stay on devices: each goes up once a call to a device that reads it,
/// to a place of its own.
using ResidentBlocks = std::set<BlockId>;

/// Where a layer's use of a block lies in the stage's parameter and gradient entries.
struct UsePlace {
  BlockUseId use;
  BlockUseId holder;           ///< The stage's first use of the block, for which the
                               ///< block goes up; none where nobody reads it.
  bool backward_reads = true;  ///< Whether the layer's backward reads the parameters.
  bool stays = false;          ///< Whether devices keep the block for a whole call.
  Bytes parameters = 0;        ///< The block's master table, in the parameter entry;
                               ///< of a block that stays, in its own place.
  Bytes gradients = 0;         ///< The block's gradient table, in the gradient entry.
  Bytes rounded = 0;           ///< The block's rounded table, in the gradient entry:
                               ///< behind the sums, or where sums have been.
  bool trains = true;          ///< Frozen blocks have no place in the gradient entry.

  /// Whether the block goes up for this use; else the layer reads what went up for another. What
  /// stays goes up with the first stage of a call that holds it on a device.
  [[nodiscard]] bool holds() const noexcept { return holder == use; }
};

/// A boundary that a forward stage hands to the host.
struct KeptBoundary {
  std::size_t boundary = 0;  ///< The layer that made it.
  Place place;
};

/// All places of a stage, at capacity.
struct StageLayout {
  StageKind kind = StageKind::forward;
  LayerRange range;
  std::vector<LayerPlaces> layers;  ///< By layer of the range.
  std::vector<UsePlace> uses;       ///< In layer order.
  std::vector<KeptBoundary> kept;   ///< Of forward stages.
  WorkingSet working_set;           ///< Of forward and backward stages.
  Place loss;                       ///< One double.
  Place results;
  Bytes parameter_bytes = 0;
  Bytes gradient_bytes = 0;
  Bytes in_bytes = 0;
  Bytes out_bytes = 0;
  Bytes scratch_bytes = 0;
  Bytes save_bytes = 0;          ///< The most that the host keeps of a layer and micro-batch.
  bool reads_to_the_end = true;  ///< Whether its last pass reads parameters of its entry.
  RegionPlaces region;           ///< Where the plan of a device's memory puts it.

  /// What the stage runs of a micro-batch of a round, in order.
  [[nodiscard]] std::vector<Pass> passes(RoundId round, std::size_t micro_batch) const {
    return passes_over(kind, range, working_set.of_round(round.index()), micro_batch);
  }
  /// The place of \p use, which is one of the stage's.
  [[nodiscard]] UsePlace const& place_of(BlockUseId use) const;
  /// The layer whose backward is the last to read what goes up for \p holder; the range's end when
  /// no backward does.
  [[nodiscard]] std::size_t last_reader(BlockUseId holder, ParameterBlocks const& blocks) const;
  [[nodiscard]] bool has_backward() const noexcept { return runs_backward(kind); }
  /// Whether the stage uses \ref forward_ring: it may run in turn with a backward stage.
  [[nodiscard]] bool has_own_rings() const noexcept {
    return kind == StageKind::forward && working_set.overlaps_rounds();
  }
  /// Whether each layer is recomputed just before its backward.
  [[nodiscard]] bool recomputes_one_by_one() const noexcept {
    return kind == StageKind::backward && working_set.checkpoints() == Checkpoints::layers;
  }
  /// Whether the stage runs \p layer forward, or once more, for any micro-batch.
  [[nodiscard]] bool runs_forward(std::size_t layer) const;
  [[nodiscard]] bool has_loss() const noexcept { return loss.area != Area::none; }
};

/// Lays out a stage of \p kind over \p range. \p is_checkpoint(i) says whether a backward stage
/// begins behind layer i; \p resident blocks have their places elsewhere.
///
/// Parameters, gradients, saved activations and a backward stage's inner boundaries add up over the
/// layers, but a block's parameters count once, however many layers use it; workspace takes the
/// maximum; a forward stage's inner boundaries and a backward stage's inner gradients alternate
/// between two places. Tensors that layers carry, and their gradients, stay at one place until a
/// layer takes them or the stage hands them on (\ref BoundaryPlace::apart). Checkpoints have places
/// in the entries. Where every boundary is one, layers are recomputed one by one, and saved
/// activations take the maximum, too. The last micro-batch's backward rounds gradients layer by
/// layer, from the last to the first; a use's rounded gradients take the place of sums that are
/// rounded before, if these leave room.
[[nodiscard]] StageLayout lay_out_stage(ModelDescription const& model,
                                        ParameterBlocks const& blocks,
                                        StageKind kind,
                                        LayerRange range,
                                        std::function<bool(std::size_t)> const& is_checkpoint,
                                        WorkingSet const& working_set = {},
                                        ResidentBlocks const& resident = {});

}  // namespace roundpipe

#ifdef ROUNDPIPE_COMPILED
extern template class std::vector<roundpipe::StageLayout>;
#endif

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/stage_layout.ipp>
#endif
