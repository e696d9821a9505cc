// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/partition/slot_simulation.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE SlotSimulation::SlotSimulation(std::span<LayerCost const> costs,
                                                std::size_t devices,
                                                std::size_t micro_batches_per_call,
                                                SlotSimulationOptions options)
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
      sums_s_[kind].push_back(sums_s_[kind].back() + seconds_of(static_cast<PassKind>(kind), cost));
    }
  }
}

ROUNDPIPE_INLINE SimulatedCall SlotSimulation::simulate(Partition const& partition,
                                                        std::size_t round) {
  require(round > 0 && micro_batches_per_call_ % round == 0,
          Errc::invalid_argument,
          "the micro-batches of a call do not fill its rounds");
  take_stages(partition);
  auto const devices = free_s_.size();
  auto const rounds = micro_batches_per_call_ / round;
  arrivals_s_.resize(round);
  std::fill(free_s_.begin(), free_s_.end(), 0.0);
  auto const busy_s = static_cast<double>(micro_batches_per_call_) * stage_sum_s();
  posted_s_ = 0;
  device_ = 0;
  if (!options_.asynchronous) {
    run_call(rounds);
    auto const end_s = *std::max_element(free_s_.begin(), free_s_.end());
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
    std::rotate(gradients_s_.begin(), gradients_s_.begin() + 1, gradients_s_.end());
  }
  auto const all_s = sum(free_s_) - warm_s;
  return {all_s / static_cast<double>(devices * measured),
          bubble(busy_s * static_cast<double>(measured), all_s)};
}

ROUNDPIPE_INLINE double SlotSimulation::sum(std::vector<double> const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

ROUNDPIPE_INLINE void SlotSimulation::take_stages(Partition const& partition) {
  stages_.clear();
  fused_ = partition.forward.size();
  for (auto const& range : partition.forward) {
    add_stage(StageKind::forward, range);
  }
  for (auto const& range : partition.backward) {
    add_stage(backward_kind(stages_.size() > fused_), range);
  }
}

ROUNDPIPE_INLINE void SlotSimulation::add_stage(StageKind kind, LayerRange range) {
  auto const time_of = [&](LayerRange layers) {
    StageTime time;
    for (auto const& pass : layer_passes(kind)) {
      auto const& sums_s = sums_s_[static_cast<std::size_t>(pass.kind)];
      auto seconds = sums_s[layers.end()] - sums_s[layers.first];
      if (pass.kind == PassKind::recompute && options_.replays_last_layers) {
        auto const& last = costs_[layers.end() - 1];
        seconds -= last.recomputing_s() - last.replaying_s(0);
      }
      time.add(pass, seconds);
    }
    return time;
  };
  auto time = time_of(range);
  if (options_.recompute_waits_for_gradient || options_.recomputes_one_by_one) {
    auto const early_s =
        options_.recompute_waits_for_gradient ? 0 : time_of({range.end() - 1, 1}).early_s;
    time = {early_s, time.seconds() - early_s};
  }
  stages_.push_back({range, time});
}

ROUNDPIPE_INLINE double SlotSimulation::stage_sum_s() const {
  double sum_s = 0;
  for (auto const& stage : stages_) {
    sum_s += stage.time.seconds();
  }
  return sum_s;
}

ROUNDPIPE_INLINE void SlotSimulation::run_call(std::size_t rounds) {
  auto const communication_s = free_s_.size() > 1 ? options_.communication_s : 0;
  auto const begin_s = options_.posts_after_losses ? posted_s_ : 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    std::fill(arrivals_s_.begin(), arrivals_s_.end(), begin_s);
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

}  // namespace roundpipe
