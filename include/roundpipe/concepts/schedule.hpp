// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What deals stages to devices.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <concepts>
#include <cstddef>
#include <vector>

namespace roundpipe {

/// What a task computes for one micro-batch.
enum class TaskKind {
  forward,          ///< All layers of a forward stage.
  recompute,        ///< The saving forward of a backward stage's layers.
  backward,         ///< The backward of a stage's layers, last layer first.
  fused,            ///< Saving forward, loss and backward of the first backward stage.
  input_gradient,   ///< The half of a split backward that the previous stage waits for.
  weight_gradient,  ///< The other half.
};

/// One stage's work on one micro-batch.
struct Task {
  StageId stage;  ///< Forward stages first, then backward stages, in execution order.
  TaskKind kind = TaskKind::forward;
  RoundId round;
  MicroBatchId micro_batch;  ///< Within its round.

  friend bool operator==(Task const&, Task const&) = default;
};

/// The size of the problem that a schedule solves.
struct ScheduleShape {
  std::size_t forward_stages = 0;
  std::size_t backward_stages = 0;          ///< 0: a forward-only call.
  std::size_t devices = 1;                  ///< N
  std::size_t micro_batches_per_round = 1;  ///< M_R: of one round.
  std::size_t rounds = 1;                   ///< R: of one call.
  /// Whether the first backward stage also runs the forward of its layers (fused); then no forward
  /// stage holds these layers. Otherwise the forward stages hold all layers.
  bool fused = true;
  /// Whether the plan has room for rounds that overlap: the forward stages of a round may take
  /// turns with the backward stages of the round before, none earlier than \ref first_beside says.
  bool overlaps_rounds = false;

  [[nodiscard]] constexpr std::size_t stages() const noexcept {
    return forward_stages + backward_stages;
  }
  /// Where rounds overlap: the first forward stage that takes its turn with backward stage \p i, or
  /// a later one. Forward stages are spread evenly over the backward stages.
  [[nodiscard]] constexpr std::size_t first_beside(std::size_t i) const noexcept {
    return i * forward_stages / backward_stages;
  }
};

/// \throws Error (invalid_argument) when there are no stages, devices, micro-batches or rounds.
inline void check(ScheduleShape const& shape) {
  require(shape.stages() > 0, Errc::invalid_argument, "a schedule needs at least one stage");
  require(shape.devices > 0, Errc::invalid_argument, "a schedule needs at least one device");
  require(shape.micro_batches_per_round > 0,
          Errc::invalid_argument,
          "a schedule needs at least one micro-batch in a round");
  require(shape.rounds > 0, Errc::invalid_argument, "a schedule needs at least one round");
}

/// The tasks of each relative device, in the order in which the device runs them.
using DeviceTasks = std::vector<std::vector<Task>>;

/// \brief A pure function from the size of the problem to the tasks of each device.
///
/// Semantics:
/// 1. `tasks(shape)` holds one list for each device. Every forward stage has one `forward` task for
///    each micro-batch and round. The first backward stage has one `fused` task where
///    `shape.fused`. Every other backward stage has one `recompute` task and, later on the same
///    device, one `backward` task or its two halves, the input gradient first.
/// 2. Devices are relative: device i of a call is device (g0 + i) mod N. `advance(shape)` says by
///    how much g0 moves after the call, by less than N; a schedule that binds stages to devices
///    returns 0.
/// 3. The lists can run: when devices take tasks in list order, none waits forever for another.
/// 4. To *run* a schedule (not only simulate it), all micro-batches of a stage in one round must be
///    consecutive on one device, in order; reason: their gradients accumulate there and are rounded
///    once. A stage's rounds come in order, and none so early that it overwrites what the round
///    before still reads. Where `shape.overlaps_rounds`, two stages may take turns: a
///    forward stage and, after it, a backward stage of the round before; the first micro-batches of
///    both, then the second ones, and so on. A schedule need not do so.
///
/// Opt-in: `static bool fuses()`, whether the schedule wants the first backward stage fused;
/// without this member it does (see \ref fuses). A schedule that depends on the fusion refuses
/// other shapes.
///
/// Satisfied by: `RoundRobinSchedule`, `LoopedBfsSchedule`; simulated only:
/// `EarliestFinishSchedule` (which knows the stages of one kind of call), `NaiveSchedule`,
/// `GPipeSchedule`, `OneFOneBSchedule`, `InterleavedSchedule`, `ZbH1Schedule`, `DualPipeSchedule`.
template <class S>
concept Schedule =
    std::copy_constructible<S> && requires(S const& schedule, ScheduleShape const& shape) {
      { schedule.tasks(shape) } -> std::same_as<DeviceTasks>;
      { schedule.advance(shape) } -> std::convertible_to<std::size_t>;
    };

/// \brief A schedule that says whether it wants the first backward stage fused.
template <class S>
concept HasFuses = requires(S const& schedule) {
  { schedule.fuses() } -> std::convertible_to<bool>;
};

/// Whether \p schedule wants the first backward stage fused with the forward of its layers.
template <Schedule S>
[[nodiscard]] constexpr bool fuses(S const& schedule) {
  if constexpr (HasFuses<S>) {
    return schedule.fuses();
  } else {
    return true;
  }
}

}  // namespace roundpipe
