// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/model/working_set.hpp>

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

namespace detail {

/// The backward of a layer from its checkpoint, and the recomputation before it, if any.
ROUNDPIPE_INLINE void add_from_checkpoint(std::vector<Pass>& passes,
                                          std::size_t layer,
                                          WorkingSet const& working_set,
                                          std::size_t micro_batch) {
  auto backward = backward_pass;
  backward.layer = layer;
  backward.level = working_set.level(layer, micro_batch);
  backward.reads.add(PassData::checkpoint);
  if (backward.level > 0) {
    backward.reads.add(PassData::kept);
  }
  if (working_set.recomputes(layer, micro_batch)) {
    auto recompute = recompute_pass;
    recompute.layer = layer;
    recompute.level = backward.level;
    recompute.saves.remove(PassData::output);
    if (recompute.level > 0) {
      recompute.reads.add(PassData::kept);
    }
    passes.push_back(recompute);
  } else {
    backward.reads.remove(PassData::activations);
  }
  passes.push_back(backward);
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<Pass> passes_over(StageKind kind,
                                               LayerRange range,
                                               WorkingSet const& working_set,
                                               std::size_t micro_batch) {
  std::vector<Pass> passes;
  if (kind == StageKind::backward && working_set.checkpoints() == Checkpoints::layers) {
    for (auto layer = range.end(); layer-- > range.first;) {
      detail::add_from_checkpoint(passes, layer, working_set, micro_batch);
    }
    return passes;
  }
  passes = passes_over(layer_passes(kind), range);
  for (auto& pass : passes) {
    if (pass.kind == PassKind::recompute && pass.layer + 1 == range.end()) {
      pass.saves.remove(PassData::output);
    }
    if (kind == StageKind::forward) {
      pass.level = working_set.level(pass.layer, micro_batch);
      if (pass.level > 0) {
        pass.writes.add(PassData::kept);
      }
    }
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
