// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The times and bytes of passes, which those of layers and stages are sums of.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <span>

namespace roundpipe {

/// The seconds of a pass of a layer of \p cost; a recomputation is the whole one. Each half of a
/// split backward has as many matrix products as the other: it takes half of the backward's time.
[[nodiscard]] inline double seconds_of(PassKind kind, LayerCost const& cost) noexcept {
  switch (kind) {
    case PassKind::forward:
      return cost.forward_s;
    case PassKind::recompute:
      return cost.recomputing_s();
    case PassKind::backward:
      return cost.backward_s;
    case PassKind::input_gradient:
    case PassKind::weight_gradient:
      break;
  }
  return cost.backward_s / 2;
}

/// The seconds of \p pass, of a layer of \p cost. A recomputation whose output nobody reads takes
/// what its save level leaves to do.
[[nodiscard]] inline double seconds_of(Pass const& pass, LayerCost const& cost) noexcept {
  return pass.kind == PassKind::recompute && !pass.hands_on_output() ? cost.replaying_s(pass.level)
                                                                     : seconds_of(pass.kind, cost);
}

/// The seconds of all \p passes of a layer of \p cost.
[[nodiscard]] inline double seconds_of(std::span<Pass const> passes,
                                       LayerCost const& cost) noexcept {
  double sum = 0;
  for (auto const& pass : passes) {
    sum += seconds_of(pass.kind, cost);
  }
  return sum;
}

/// What a stage does with one micro-batch, in seconds.
struct StageTime {
  double early_s = 0;  ///< What waits for no other stage: recomputation.
  double late_s = 0;   ///< What waits for the stage before.

  [[nodiscard]] constexpr double seconds() const noexcept { return early_s + late_s; }

  /// Adds the \p seconds of \p pass, which comes after all that were added.
  constexpr void add(Pass const& pass, double seconds) noexcept {
    (pass.waits_for_stage_before() || late_s > 0 ? late_s : early_s) += seconds;
  }
};

/// When a device runs a stage for one micro-batch.
struct StageRun {
  double ready_s = 0;  ///< Its early part is done.
  double start_s = 0;  ///< What the stage before hands on is there, too.
  double end_s = 0;
};

/// The run of a stage on a device that is free at \p free_s; what the stage before hands on arrives
/// at \p arrival_s.
[[nodiscard]] constexpr StageRun run_stage(StageTime const& time,
                                           double free_s,
                                           double arrival_s) noexcept {
  auto const ready_s = free_s + time.early_s;
  auto const start_s = std::max(ready_s, arrival_s);
  return {ready_s, start_s, start_s + time.late_s};
}

/// The bytes that a device holds of a layer for as long as its stage runs, once each.
struct PassBytes {
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes saved = 0;  ///< Activations and boundaries that wait for the backward.

  constexpr PassBytes& operator+=(PassBytes const& other) noexcept {
    parameters += other.parameters;
    gradients += other.gradients;
    saved += other.saved;
    return *this;
  }
  friend constexpr PassBytes operator-(PassBytes a, PassBytes const& b) noexcept {
    return {a.parameters - b.parameters, a.gradients - b.gradients, a.saved - b.saved};
  }
  friend constexpr bool operator==(PassBytes const&, PassBytes const&) noexcept = default;
};

/// What a stage holds of a layer of \p bytes of which it runs \p passes. Each figure is rounded up
/// to \ref tensor_alignment_bytes.
[[nodiscard]] constexpr PassBytes bytes_of(std::span<Pass const> passes,
                                           LayerBytes const& bytes) noexcept {
  auto const holds = [&](PassData datum) { return saves(passes, datum) || reads(passes, datum); };
  return {passes.empty() ? 0 : align_up(bytes.parameter_bytes),
          writes(passes, PassData::parameter_gradient) ? align_up(bytes.gradient_bytes) : 0,
          (holds(PassData::activations) ? align_up(bytes.saved_bytes) : 0) +
              (holds(PassData::output) ? align_up(bytes.boundary_bytes) : 0)};
}

}  // namespace roundpipe
