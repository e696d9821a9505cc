// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The device bytes that a stage of given layers needs, for all candidate stages of a model.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// The sizes of all stages that a partition may choose from, computed once.
class StageBudget {
 public:
  StageBudget(ModelDescription const& model,
              ParameterBlocks const& blocks,
              WorkingSet const& working_set = {});

  /// What a device needs to run this stage alone: ring entries times their counts, and scratch.
  [[nodiscard]] Bytes bytes(StageDirection direction,
                            LayerRange range,
                            Buffering const& buffering) const;

  /// The layer that needs the most bytes as a stage of its own, and these bytes.
  [[nodiscard]] std::pair<std::size_t, Bytes> largest_layer(Buffering const& buffering) const;

 private:
  /// Parameters, gradients, activations in, activations out, scratch, saves.
  using Sizes = std::array<Bytes, 6>;

  [[nodiscard]] static Sizes sizes_of(StageLayout const& layout);
  [[nodiscard]] std::size_t index(StageDirection direction, LayerRange range) const {
    return ((direction == StageDirection::forward ? 0 : layers_) + range.first) * layers_ +
           range.count - 1;
  }
  [[nodiscard]] Sizes& at(StageDirection direction, LayerRange range) {
    return sizes_[index(direction, range)];
  }
  [[nodiscard]] Sizes const& at(StageDirection direction, LayerRange range) const {
    return sizes_[index(direction, range)];
  }

  std::size_t layers_;
  std::vector<Sizes> sizes_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/stage_budget.ipp>
#endif
