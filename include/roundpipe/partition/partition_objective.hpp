// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long stages take, and what a good partition makes small.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <span>

namespace roundpipe {

/// The time of a stage of \p layers for one micro-batch, in seconds: a forward stage runs their
/// forward, a backward stage recomputes and runs their backward. The backward stage that holds the
/// last layer is the fused one: it runs their forward for the first time.
/// \throws Error (invalid_argument) when \p costs has no such layers.
[[nodiscard]] inline double stage_seconds(std::span<LayerCost const> costs,
                                          StageDirection direction,
                                          LayerRange layers) {
  require(layers.first <= costs.size() && layers.count <= costs.size() - layers.first,
          Errc::invalid_argument,
          "a stage has layers that the model does not have");
  auto const passes = layer_passes(stage_kind(direction, layers, costs.size()));
  double sum = 0;
  for (auto const& cost : costs.subspan(layers.first, layers.count)) {
    sum += seconds_of(passes, cost);
  }
  return sum;
}

/// t_max: the time of the slowest stage for one micro-batch, in seconds.
/// \throws Error (invalid_argument) when \p costs lacks a layer of \p partition.
[[nodiscard]] inline double slowest_stage_seconds(std::span<LayerCost const> costs,
                                                  Partition const& partition) {
  double slowest = 0;
  for (auto const layers : partition.forward) {
    slowest = std::max(slowest, stage_seconds(costs, StageDirection::forward, layers));
  }
  for (auto const layers : partition.backward) {
    slowest = std::max(slowest, stage_seconds(costs, StageDirection::backward, layers));
  }
  return slowest;
}

/// (M S + N (N - 1)) t_max: the device seconds of a call, idle ones included, when every stage
/// takes as long as the slowest; a call then lasts an N-th of it (RoundPipe, arXiv:2604.27085).
/// \throws Error (invalid_argument) when \p problem lacks a layer of \p partition.
[[nodiscard]] inline double objective(PartitionProblem const& problem, Partition const& partition) {
  auto const n = static_cast<double>(problem.devices);
  auto const tasks =
      static_cast<double>(problem.micro_batches_per_call) * static_cast<double>(partition.size());
  return (tasks + n * (n - 1)) * slowest_stage_seconds(problem.costs, partition);
}

}  // namespace roundpipe
