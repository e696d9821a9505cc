// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<Pass> passes_over(std::span<Pass const> of_layer, LayerRange range) {
  std::vector<Pass> passes;
  auto const add = [&](std::size_t layer, bool backward) {
    for (auto pass : of_layer) {
      if (pass.runs_backward() == backward) {
        pass.layer = layer;
        passes.push_back(pass);
      }
    }
  };
  for (auto layer = range.first; layer < range.end(); ++layer) {
    add(layer, false);
  }
  for (auto layer = range.end(); layer-- > range.first;) {
    add(layer, true);
  }
  return passes;
}

ROUNDPIPE_INLINE bool has_fused_stage(Partition const& partition) {
  std::size_t covered = 0;
  for (auto const& range : partition.forward) {
    covered = std::max(covered, range.end());
  }
  return !partition.backward.empty() &&
         backward_kind(partition.backward.front().end() <= covered) == StageKind::fused;
}

ROUNDPIPE_INLINE std::vector<Stage> stages_of(Partition const& partition) {
  std::vector<Stage> stages;
  for (auto const& range : partition.forward) {
    stages.push_back({StageKind::forward, range});
  }
  auto kind = backward_kind(!has_fused_stage(partition));
  for (auto const& range : partition.backward) {
    stages.push_back({std::exchange(kind, StageKind::backward), range});
  }
  return stages;
}

}  // namespace roundpipe
