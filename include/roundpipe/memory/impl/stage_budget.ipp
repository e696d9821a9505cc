// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE StageNeeds const& StageBudget::needs(StageDirection direction,
                                                      LayerRange range) const {
  auto const layers = model_.size();
  auto const row = (direction == StageDirection::forward ? 0 : layers) + range.first;
  auto& known = sizes_[row * layers + range.count - 1];
  if (!known) {
    known = compute(direction, range);
  }
  return *known;
}

ROUNDPIPE_INLINE StageNeeds StageBudget::compute(StageDirection direction, LayerRange range) const {
  auto const is_checkpoint = [](std::size_t) { return false; };
  auto const lay_out = [&](StageKind kind) {
    return sizes_of(lay_out_stage(model_, blocks_, kind, range, is_checkpoint, working_set_));
  };
  auto const backward = stage_kind(StageDirection::backward, range, model_.size());
  auto const is_fused = backward == StageKind::fused;  // the fused stage also evaluates
  if (direction == StageDirection::forward) {
    return lay_out(is_fused ? StageKind::evaluate : StageKind::forward);
  }
  auto result = lay_out(backward);
  if (is_fused) {
    result.include(needs(StageDirection::forward, range));
  }
  return result;
}

ROUNDPIPE_INLINE Bytes StageBudget::bytes(StageDirection direction,
                                          LayerRange range,
                                          Buffering const& buffering) const {
  return needs(direction, range).bytes(buffering);
}

ROUNDPIPE_INLINE std::pair<std::size_t, Bytes> StageBudget::largest_layer(
    Buffering const& buffering) const {
  std::pair<std::size_t, Bytes> largest{0, 0};
  for (std::size_t i = 0; i < model_.size(); ++i) {
    auto const needed = bytes(StageDirection::backward, {i, 1}, buffering);
    if (needed > largest.second) {
      largest = {i, needed};
    }
  }
  return largest;
}

ROUNDPIPE_INLINE LargestStages StageBudget::largest_stages(Partition const& partition,
                                                           Buffering const& buffering) const {
  LargestStages largest;
  auto const add = [&](StageDirection direction, std::vector<LayerRange> const& ranges) {
    for (auto const& range : ranges) {
      auto& most = range.count > 1 ? largest.of_several : largest.of_one;
      most = std::max(most, bytes(direction, range, buffering));
    }
  };
  add(StageDirection::forward, partition.forward);
  add(StageDirection::backward, partition.backward);
  return largest;
}

ROUNDPIPE_INLINE StageNeeds StageBudget::sizes_of(StageLayout const& layout) {
  if (layout.has_own_rings()) {
    return {.scratch = layout.scratch_bytes,
            .forward_parameters = layout.parameter_bytes,
            .forward_in = layout.in_bytes,
            .forward_out = layout.out_bytes,
            .forward_saves = layout.save_bytes,
            .reads_to_the_end = layout.reads_to_the_end};
  }
  return {.parameters = layout.parameter_bytes,
          .gradients = layout.gradient_bytes,
          .in = layout.in_bytes,
          .out = layout.out_bytes,
          .saves = layout.save_bytes,
          .scratch = layout.scratch_bytes,
          .reads_to_the_end = layout.reads_to_the_end};
}

}  // namespace roundpipe
