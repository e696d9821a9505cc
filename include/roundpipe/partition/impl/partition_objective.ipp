// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/partition/partition_objective.hpp>

#include <algorithm>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE double stage_seconds(std::span<LayerCost const> costs,
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

ROUNDPIPE_INLINE double slowest_stage_seconds(std::span<LayerCost const> costs,
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

ROUNDPIPE_INLINE double objective(PartitionProblem const& problem, Partition const& partition) {
  auto const n = static_cast<double>(problem.devices);
  auto const tasks =
      static_cast<double>(problem.micro_batches_per_call) * static_cast<double>(partition.size());
  return (tasks + n * (n - 1)) * slowest_stage_seconds(problem.costs, partition);
}

}  // namespace roundpipe
