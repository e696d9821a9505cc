// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a stage runs: its passes, and what each of them reads, saves and writes.
///
/// This is the only place that says so. Times, bytes, tasks and actions of stages fold over passes.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace roundpipe {

/// What a pass computes: one layer, for one micro-batch.
enum class PassKind : std::uint8_t {
  forward,          ///< The layer's first forward.
  recompute,        ///< Its forward once more, to save what the backward needs.
  backward,         ///< The whole backward.
  input_gradient,   ///< The half of a split backward that the layer before waits for.
  weight_gradient,  ///< The other half.
};
inline constexpr std::size_t pass_kind_count = 5;

/// What passes read, save and write. Each belongs to a layer and a micro-batch.
enum class PassData : std::uint8_t {
  input,               ///< The boundary that the layer before has just made.
  checkpoint,          ///< The same boundary, saved on the host by an earlier stage.
  output,              ///< The boundary that the layer makes; of the last layer, the loss.
  activations,         ///< What the layer saves for its backward, besides boundaries.
  output_gradient,     ///< The gradient of the layer's output.
  input_gradient,      ///< The gradient of its input.
  parameter_gradient,  ///< The gradients of its parameters.
  kept,                ///< Activations on the host, as many as the save level says.
};

/// A set of \ref PassData.
class PassDataSet {
 public:
  constexpr PassDataSet() = default;
  constexpr PassDataSet(std::initializer_list<PassData> data) noexcept {
    for (auto const datum : data) {
      add(datum);
    }
  }
  [[nodiscard]] constexpr bool has(PassData datum) const noexcept {
    return (bits_ & bit(datum)) != 0;
  }
  constexpr void add(PassData datum) noexcept {
    bits_ = static_cast<std::uint8_t>(bits_ | bit(datum));
  }
  constexpr void remove(PassData datum) noexcept {
    bits_ = static_cast<std::uint8_t>(bits_ & ~bit(datum));
  }
  friend constexpr bool operator==(PassDataSet, PassDataSet) noexcept = default;

 private:
  static constexpr std::uint8_t bit(PassData datum) noexcept {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(datum));
  }
  std::uint8_t bits_ = 0;
};

/// One pass of a layer. The first layer's input, its gradient and the last layer's output gradient
/// do not exist: who folds over passes counts them as nothing.
struct Pass {
  PassKind kind = PassKind::forward;
  PassDataSet reads;   ///< What other passes have made.
  PassDataSet saves;   ///< What it leaves on the device until the layer's backward.
  PassDataSet writes;  ///< What it hands on: to the next pass, to another stage, to the host.
  std::size_t layer = 0;
  std::size_t level = 0;  ///< The save level of what is kept.

  /// Whether it goes against the order of layers.
  [[nodiscard]] constexpr bool runs_backward() const noexcept {
    return kind != PassKind::forward && kind != PassKind::recompute;
  }
  /// Whether it needs what the stage before hands on; else it may run as soon as a device is free.
  [[nodiscard]] constexpr bool waits_for_stage_before() const noexcept {
    return reads.has(PassData::input) || reads.has(PassData::output_gradient);
  }
  /// Of a forward or a recomputation: whether anyone reads the output that it makes.
  [[nodiscard]] constexpr bool hands_on_output() const noexcept {
    return saves.has(PassData::output) || writes.has(PassData::output);
  }
  friend constexpr bool operator==(Pass const&, Pass const&) noexcept = default;
};

/// Whether one of \p passes reads \p datum.
[[nodiscard]] constexpr bool reads(std::span<Pass const> passes, PassData datum) noexcept {
  return std::any_of(
      passes.begin(), passes.end(), [&](Pass const& pass) { return pass.reads.has(datum); });
}
/// Whether one of \p passes saves \p datum.
[[nodiscard]] constexpr bool saves(std::span<Pass const> passes, PassData datum) noexcept {
  return std::any_of(
      passes.begin(), passes.end(), [&](Pass const& pass) { return pass.saves.has(datum); });
}
/// Whether one of \p passes writes \p datum.
[[nodiscard]] constexpr bool writes(std::span<Pass const> passes, PassData datum) noexcept {
  return std::any_of(
      passes.begin(), passes.end(), [&](Pass const& pass) { return pass.writes.has(datum); });
}

/// How a stage runs its layers.
enum class StageKind : std::uint8_t {
  forward,   ///< Forward; the host keeps what is saved.
  fused,     ///< Saving forward, then backward: of layers that no forward stage has run.
  backward,  ///< Recomputation of what the host has not kept, then backward.
  evaluate,  ///< The fused stage's layers in a call without backward: loss and results.
};
inline constexpr std::size_t stage_kind_count = 4;

/// A forward that saves nothing.
inline constexpr Pass forward_pass{PassKind::forward, {PassData::input}, {}, {PassData::output}};
/// A forward that saves what the backward needs.
inline constexpr Pass saving_forward_pass{PassKind::forward,
                                          {PassData::input},
                                          {PassData::activations, PassData::output},
                                          {PassData::output}};
inline constexpr Pass recompute_pass{
    PassKind::recompute, {PassData::checkpoint}, {PassData::activations, PassData::output}, {}};
inline constexpr Pass backward_pass{PassKind::backward,
                                    {PassData::activations, PassData::output_gradient},
                                    {},
                                    {PassData::input_gradient, PassData::parameter_gradient}};
inline constexpr Pass input_gradient_pass{PassKind::input_gradient,
                                          {PassData::activations, PassData::output_gradient},
                                          {PassData::output_gradient},
                                          {PassData::input_gradient}};
/// It finds the output's gradient where the other half has left it.
inline constexpr Pass weight_gradient_pass{
    PassKind::weight_gradient, {PassData::activations}, {}, {PassData::parameter_gradient}};

namespace detail {
inline constexpr Pass fused_passes[] = {saving_forward_pass, backward_pass};
inline constexpr Pass backward_passes[] = {recompute_pass, backward_pass};
}  // namespace detail

/// What a stage of \p kind runs of each of its layers, in order, when the host keeps nothing but
/// checkpoints between stages. The passes' `layer` is 0.
[[nodiscard]] constexpr std::span<Pass const> layer_passes(StageKind kind) noexcept {
  switch (kind) {
    case StageKind::fused:
      return detail::fused_passes;
    case StageKind::backward:
      return detail::backward_passes;
    case StageKind::forward:
    case StageKind::evaluate:
      break;
  }
  return {&forward_pass, 1};
}

/// The passes of all layers of \p range, in the order in which a device runs them: forward in layer
/// order, then backward from the last layer to the first.
[[nodiscard]] std::vector<Pass> passes_over(std::span<Pass const> of_layer, LayerRange range);

/// The passes that a stage of \p kind over \p range runs of micro-batch \p micro_batch of a round.
/// What the host keeps is not recomputed. Where every boundary is a checkpoint, a backward stage
/// recomputes each layer just before the layer's backward. Nobody reads the output of a
/// recomputation there, nor that of a stage's last layer.
[[nodiscard]] std::vector<Pass> passes_over(StageKind kind,
                                            LayerRange range,
                                            WorkingSet const& working_set,
                                            std::size_t micro_batch);

/// A stage of a model.
struct Stage {
  StageKind kind = StageKind::forward;
  LayerRange range;

  /// Of a micro-batch of which the host keeps nothing but checkpoints between stages.
  [[nodiscard]] std::vector<Pass> passes() const { return passes_over(kind, range, {}, 0); }
  friend constexpr bool operator==(Stage const&, Stage const&) noexcept = default;
};

/// Whether a stage of \p kind runs its layers backward.
[[nodiscard]] constexpr bool runs_backward(StageKind kind) noexcept {
  return layer_passes(kind).back().runs_backward();
}

/// \brief The test for a fused stage, of which all others are made.
///
/// A backward stage recomputes, or gets from the host, what a forward stage has run before it. What
/// none has run, it runs forward itself.
[[nodiscard]] constexpr StageKind backward_kind(bool has_run_forward) noexcept {
  return has_run_forward ? StageKind::backward : StageKind::fused;
}

/// The kind of a stage of a model of \p layers layers whose forward stages leave the last one to
/// the fused stage.
[[nodiscard]] constexpr StageKind stage_kind(StageDirection direction,
                                             LayerRange range,
                                             std::size_t layers) noexcept {
  return direction == StageDirection::forward ? StageKind::forward
                                              : backward_kind(range.end() < layers);
}

/// The kind of stage \p stage of a call.
[[nodiscard]] constexpr StageKind stage_kind(ScheduleShape const& shape, StageId stage) noexcept {
  return stage.index() < shape.forward_stages
             ? StageKind::forward
             : backward_kind(!shape.fused || stage.index() > shape.forward_stages);
}

/// Whether the first backward stage of \p partition is fused: its forward stages do not cover the
/// model.
[[nodiscard]] bool has_fused_stage(Partition const& partition);

/// The stages of \p partition in execution order.
[[nodiscard]] std::vector<Stage> stages_of(Partition const& partition);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/stage_passes.ipp>
#endif
