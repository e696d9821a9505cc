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

namespace roundpipe {

ROUNDPIPE_INLINE StageBudget::StageBudget(ModelDescription const& model,
                                          ParameterBlocks const& blocks,
                                          WorkingSet const& working_set)
    : layers_(model.size()), sizes_(2 * layers_ * layers_) {
  for (std::size_t first = 0; first < layers_; ++first) {
    for (std::size_t count = 1; first + count <= layers_; ++count) {
      LayerRange const range{first, count};
      auto const lay_out = [&](StageKind kind) {
        auto const is_checkpoint = [](std::size_t) { return false; };
        return sizes_of(lay_out_stage(model, blocks, kind, range, is_checkpoint, working_set));
      };
      auto const kind = stage_kind(StageDirection::backward, range, layers_);
      auto& backward = at(StageDirection::backward, range) = lay_out(kind);
      auto& forward = at(StageDirection::forward, range);
      if (kind != StageKind::fused) {
        forward = lay_out(StageKind::forward);
        continue;
      }
      forward = lay_out(StageKind::evaluate);  // the fused stage also evaluates
      backward.include(forward);
    }
  }
}

ROUNDPIPE_INLINE Bytes StageBudget::bytes(StageDirection direction,
                                          LayerRange range,
                                          Buffering const& buffering) const {
  return needs(direction, range).bytes(buffering);
}

ROUNDPIPE_INLINE std::pair<std::size_t, Bytes> StageBudget::largest_layer(
    Buffering const& buffering) const {
  std::pair<std::size_t, Bytes> largest{0, 0};
  for (std::size_t i = 0; i < layers_; ++i) {
    auto const needed = bytes(StageDirection::backward, {i, 1}, buffering);
    if (needed > largest.second) {
      largest = {i, needed};
    }
  }
  return largest;
}

ROUNDPIPE_INLINE StageNeeds StageBudget::sizes_of(StageLayout const& layout) {
  if (layout.has_own_rings()) {
    return {.scratch = layout.scratch_bytes,
            .forward_parameters = layout.parameter_bytes,
            .forward_in = layout.in_bytes,
            .forward_out = layout.out_bytes,
            .forward_saves = layout.save_bytes};
  }
  return {.parameters = layout.parameter_bytes,
          .gradients = layout.gradient_bytes,
          .in = layout.in_bytes,
          .out = layout.out_bytes,
          .saves = layout.save_bytes,
          .scratch = layout.scratch_bytes};
}

}  // namespace roundpipe
