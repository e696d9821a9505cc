// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long calls take whose slots are dealt round robin, compute and hand-over alone.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace roundpipe {

/// What \ref SlotSimulation simulates.
struct SlotSimulationOptions {
  /// The steady state of many calls, each followed by a step; else one call, from idle devices on.
  bool asynchronous = true;
  /// Asynchronous: a call begins when the losses of the one before are there, as in `Pipeline`;
  /// else as soon as devices are free.
  bool posts_after_losses = true;
  bool recompute_waits_for_gradient = false;
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
/// A device takes the next task when it is free and the task's input is there; recomputation may
/// run before the gradient is there. Parameters and gradients are copied, and parameters updated,
/// in no time. An iteration's stage waits for the gradients of its layers of the iteration before
/// last (staleness 1). In the steady state `seconds` and `bubble` are means from the third
/// iteration on: 1 - sum of busy times / sum over devices of (its finish of the last - its finish
/// of the second).
class SlotSimulation {
 public:
  /// \p costs, one a layer, must outlive it.
  /// \throws Error (invalid_argument) for no devices or micro-batches.
  SlotSimulation(std::span<LayerCost const> costs,
                 std::size_t devices,
                 std::size_t micro_batches_per_call,
                 SlotSimulationOptions options = {})
      : costs_(costs),
        micro_batches_per_call_(micro_batches_per_call),
        options_(options),
        free_s_(devices) {
    require(devices > 0, Errc::invalid_argument, "a simulation needs at least one device");
    require(
        micro_batches_per_call > 0, Errc::invalid_argument, "a call has at least one micro-batch");
    for (std::size_t kind = 0; kind < sums_s_.size(); ++kind) {
      sums_s_[kind].push_back(0);
      for (auto const& cost : costs_) {
        sums_s_[kind].push_back(sums_s_[kind].back() +
                                seconds_of(static_cast<PassKind>(kind), cost));
      }
    }
  }

  /// Calls in rounds of \p round micro-batches each, of which there are whole ones. \p partition is
  /// one of the costs' layers.
  /// \throws Error (invalid_argument) when \p round does not divide the micro-batches.
  [[nodiscard]] SimulatedCall simulate(Partition const& partition, std::size_t round) {
    require(round > 0 && micro_batches_per_call_ % round == 0,
            Errc::invalid_argument,
            "the micro-batches of a call do not fill its rounds");
    take_stages(partition);
    auto const devices = free_s_.size();
    auto const rounds = micro_batches_per_call_ / round;
    arrivals_s_.resize(round);
    std::ranges::fill(free_s_, 0.0);
    auto const busy_s = static_cast<double>(micro_batches_per_call_) * stage_sum_s();
    posted_s_ = 0;
    device_ = 0;
    if (!options_.asynchronous) {
      run_call(rounds);
      auto const end_s = *std::ranges::max_element(free_s_);
      return {end_s, bubble(busy_s, static_cast<double>(devices) * end_s)};
    }
    for (auto& iteration : gradients_s_) {
      iteration.assign(costs_.size(), 0.0);
    }
    // Slots come to the same devices again after so many calls.
    auto const slots = rounds * stages_.size();
    auto const period = devices / std::gcd(devices, slots);
    auto const measured = period * ((least_measured + period - 1) / period);
    auto const warm_up = std::max(least_warm_up, (devices + slots - 1) / slots);
    double warm_s = 0;
    for (std::size_t call = 0; call < warm_up + measured; ++call) {
      warm_s = call == warm_up ? sum(free_s_) : warm_s;
      run_call(rounds);
      std::ranges::rotate(gradients_s_, gradients_s_.begin() + 1);
    }
    auto const all_s = sum(free_s_) - warm_s;
    return {all_s / static_cast<double>(devices * measured),
            bubble(busy_s * static_cast<double>(measured), all_s)};
  }

  /// How many tasks have been simulated so far: what that takes is proportional.
  [[nodiscard]] std::size_t tasks() const noexcept { return tasks_; }

 private:
  static constexpr std::size_t least_warm_up = 2;  ///< More until every device has had a slot.
  static constexpr std::size_t least_measured = 8;

  struct TimedStage {
    LayerRange range;
    StageTime time;
  };

  static double sum(std::vector<double> const& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  }
  static double bubble(double busy_s, double all_s) {
    return all_s > 0 ? std::max(0.0, 1 - busy_s / all_s) : 0;  // not below, but for rounding
  }

  void take_stages(Partition const& partition) {
    stages_.clear();
    fused_ = partition.forward.size();
    for (auto const& range : partition.forward) {
      add_stage(StageKind::forward, range);
    }
    for (auto const& range : partition.backward) {
      add_stage(backward_kind(stages_.size() > fused_), range);
    }
  }
  void add_stage(StageKind kind, LayerRange range) {
    StageTime time;
    for (auto const& pass : layer_passes(kind)) {
      auto const& sums_s = sums_s_[static_cast<std::size_t>(pass.kind)];
      time.add(pass, sums_s[range.end()] - sums_s[range.first]);
    }
    if (options_.recompute_waits_for_gradient) {
      time = {0, time.late_s + time.early_s};
    }
    stages_.push_back({range, time});
  }
  [[nodiscard]] double stage_sum_s() const {
    double sum_s = 0;
    for (auto const& stage : stages_) {
      sum_s += stage.time.seconds();
    }
    return sum_s;
  }

  void run_call(std::size_t rounds) {
    auto const communication_s = free_s_.size() > 1 ? options_.communication_s : 0;
    auto const begin_s = options_.posts_after_losses ? posted_s_ : 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      std::ranges::fill(arrivals_s_, begin_s);
      for (std::size_t i = 0; i < stages_.size(); ++i) {
        auto const& stage = stages_[i];
        auto free_s = free_s_[device_];
        if (options_.asynchronous) {
          for (auto layer = stage.range.first; layer < stage.range.end(); ++layer) {
            free_s = std::max(free_s, gradients_s_[0][layer]);
          }
        }
        for (auto& arrival_s : arrivals_s_) {
          free_s = run_stage(stage.time, free_s, arrival_s).end_s;
          arrival_s = free_s + communication_s;
        }
        free_s_[device_] = free_s;
        device_ = device_ + 1 == free_s_.size() ? 0 : device_ + 1;
        if (i == fused_) {
          posted_s_ = free_s;
        }
        if (i >= fused_ && options_.asynchronous) {
          for (auto layer = stage.range.first; layer < stage.range.end(); ++layer) {
            gradients_s_[2][layer] = free_s;
          }
        }
      }
    }
    tasks_ += micro_batches_per_call_ * stages_.size();
  }

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
