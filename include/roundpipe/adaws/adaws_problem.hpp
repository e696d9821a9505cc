// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What AdaWS decides upon, what it chooses, and the windows in which the link works.
///
/// AdaWS is the Adaptive Working Set Strategy of Sheinberg and Li. Its symbols, the window
/// W = (C_dev - B) / L_bytes with W >= 2, and the condition finishTransfer_i < startCompute_{i+W}
/// are the paper's. The relations that follow from them here, and the model of the link, are
/// derived; docs/06_memory.md shows how.
///
/// A *sequence* is what one pass computes: a micro-batch. A round takes its sequences, the
/// *chunks*, through the first layer, the second, ..., the last, and back.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace roundpipe {

/// What AdaWS decides upon.
struct AdawsProblem {
  std::vector<LayerCost> costs;   ///< By layer, for one sequence.
  std::vector<LayerBytes> bytes;  ///< By layer; activations are those of one sequence.
  /// C_dev is its memory. The rates are those of a link that is busy both ways; 0: unlimited.
  DeviceProperties device;
  Bytes held_bytes = 0;       ///< What the device holds besides layers and activations.
  Bytes host_bytes = 0;       ///< What the host has left for activations.
  std::size_t sequences = 1;  ///< Of the batch.
};

/// The seconds of a layer and one sequence on the device, and of its copies alone on the link.
struct AdawsTimes {
  double forward_s = 0;    ///< T_fwd
  double backward_s = 0;   ///< T_bwd, without recomputation.
  double parameter_s = 0;  ///< T_param: its parameters go up.
  double gradient_s = 0;   ///< T_grad: their gradients come down.
};
/// The times of \p layer.
[[nodiscard]] AdawsTimes adaws_times(AdawsProblem const& problem, std::size_t layer);

/// What AdaWS chooses.
struct AdawsConfiguration {
  std::size_t rounds = 1;             ///< Of a batch.
  std::size_t chunks = 1;             ///< M_R: sequences of a round.
  std::size_t parameter_entries = 2;  ///< R_param: layers whose parameters have room.
  std::size_t save_entries = 2;       ///< R_act: layers and chunks whose saves have room.
  std::size_t gradient_entries = 2;   ///< R_grad: layers whose gradients have room.
  double saved_share = 0;  ///< A_save: of a layer's activations, what is saved, not recomputed.

  friend bool operator==(AdawsConfiguration const&, AdawsConfiguration const&) = default;
};
/// For example "2 rounds of 8 chunks, R_param 3, R_act 2, R_grad 3, A_save 0.310".
[[nodiscard]] std::string to_string(AdawsConfiguration const& configuration);

/// Seconds that depend on A_save.
struct AdawsSeconds {
  double unsaved = 0;  ///< With A_save = 0.
  double growth = 0;   ///< With A_save = 1, that much more.

  [[nodiscard]] constexpr double at(double saved_share) const noexcept {
    return unsaved + saved_share * growth;
  }
  constexpr AdawsSeconds& operator+=(AdawsSeconds const& other) noexcept {
    unsaved += other.unsaved;
    growth += other.growth;
    return *this;
  }
  friend constexpr AdawsSeconds operator-(AdawsSeconds const& a, AdawsSeconds const& b) noexcept {
    return {a.unsaved - b.unsaved, a.growth - b.growth};
  }
};

/// \brief The compute of a layer with all chunks of a round, in one direction.
///
/// While it runs, the link carries the activations of these chunks, and in the time that they leave
/// it the parameters of a later window up and the gradients of an earlier one down. The last layer
/// runs forward and backward in one window, as a fused stage does.
struct AdawsWindow {
  std::size_t layer = 0;
  StageKind kind = StageKind::forward;
  AdawsSeconds compute;    ///< Of each chunk, with recomputation.
  AdawsSeconds up;         ///< Of each chunk: boundaries, their gradients, saves.
  AdawsSeconds down;       ///< Likewise.
  double parameter_s = 0;  ///< T_param: up, before the window.
  double gradient_s = 0;   ///< T_grad: down, behind it; 0 forward.

  /// Whether it takes an entry of gradients.
  [[nodiscard]] constexpr bool has_gradients() const noexcept { return runs_backward(kind); }
};

/// The windows of a round, in order. Boundaries go through the host, from window to window and, as
/// checkpoints, to the backward. What saves nothing is not recomputed.
/// \throws Error (invalid_argument) for fewer than two layers, for an empty batch, and for figures
///         that do not belong together.
[[nodiscard]] std::vector<AdawsWindow> adaws_windows(AdawsProblem const& problem);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/adaws/impl/adaws_problem.ipp>
#endif
