// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long calls take whose slots are dealt round robin, compute and hand-over alone.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

/// What \ref SlotSimulation simulates.
struct SlotSimulationOptions {
  /// The steady state of many calls, each followed by a step; else one call, from idle devices on.
  bool asynchronous = true;
  /// Asynchronous: a call begins when the losses of the call before are there, as in `Pipeline`;
  /// else as soon as devices are free.
  bool posts_after_losses = true;
  /// A stage is recomputed when its gradient is there; else it may be before.
  bool recompute_waits_for_gradient = false;
  /// Layers are recomputed just before their own backward: behind the gradient, but for the last of
  /// the stage.
  bool recomputes_one_by_one = false;
  /// The last layer of a stage, whose output nobody reads, is replayed (\ref
  /// LayerCost::replaying_s), from its input alone.
  bool replays_last_layers = false;
  double communication_s = 0;  ///< From the end of a task until another device has its output.
};

/// What simulated calls take.
struct SimulatedCall {
  double seconds = 0;  ///< From call to call; or of the one call.
  double bubble = 0;   ///< The share of the devices' time in which they do not compute.
};

/// \brief Calls whose slots are dealt round robin, as \ref RoundRobinSchedule does: slot i runs on
/// device i mod N, counted on across rounds and calls, all its micro-batches in order.
///
/// A device runs its next task when the task's input is there, but for recomputation, which needs
/// no gradient. Copies of parameters and gradients, and updates, take no time. A stage waits for
/// the gradients that its layers got in the iteration before last (staleness 1). In the steady
/// state, `seconds` and `bubble` are means from the third iteration on. The bubble is 1 - (sum of
/// busy times) / (sum over devices of the time between the ends of the second and the last
/// iteration).
class SlotSimulation {
 public:
  /// \p costs, one a layer, must outlive it.
  /// \throws Error (invalid_argument) for no devices or micro-batches.
  SlotSimulation(std::span<LayerCost const> costs,
                 std::size_t devices,
                 std::size_t micro_batches_per_call,
                 SlotSimulationOptions options = {});

  /// Calls in rounds of \p round micro-batches each. Precondition: \p partition covers the costs'
  /// layers.
  /// \throws Error (invalid_argument) when \p round does not divide the micro-batches.
  [[nodiscard]] SimulatedCall simulate(Partition const& partition, std::size_t round);

  /// How many tasks it has simulated so far; the effort is proportional.
  [[nodiscard]] std::size_t tasks() const noexcept { return tasks_; }

 private:
  static constexpr std::size_t least_warm_up = 2;  ///< More until every device has had a slot.
  static constexpr std::size_t least_measured = 8;

  struct TimedStage {
    LayerRange range;
    StageTime time;
  };

  static double sum(std::vector<double> const& values);
  static double bubble(double busy_s, double all_s) {
    return all_s > 0 ? std::max(0.0, 1 - busy_s / all_s)
                     : 0;  // rounding alone could make it negative
  }

  void take_stages(Partition const& partition);
  void add_stage(StageKind kind, LayerRange range);
  [[nodiscard]] double stage_sum_s() const;

  void run_call(std::size_t rounds);

  std::span<LayerCost const> costs_;
  std::size_t micro_batches_per_call_;
  SlotSimulationOptions options_;
  /// By kind of pass: the seconds of so many of the model's first layers.
  std::array<std::vector<double>, pass_kind_count> sums_s_;
  std::vector<TimedStage> stages_;
  std::size_t fused_ = 0;
  std::vector<double> free_s_;      // by device
  std::vector<double> arrivals_s_;  // by micro-batch: of what the latest stage handed over
  // Of the iteration before last, of the last and of this one: by layer, when the gradients are
  // complete.
  std::array<std::vector<double>, 3> gradients_s_;
  double posted_s_ = 0;
  std::size_t device_ = 0;
  std::size_t tasks_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/slot_simulation.ipp>
#endif
