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

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a stage needs of each class: the entries of rings, and scratch.
struct StageNeeds {
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes in = 0;
  Bytes out = 0;
  Bytes saves = 0;
  Bytes scratch = 0;
  // Of a forward stage with rings of its own, in place of those above.
  Bytes forward_parameters = 0;
  Bytes forward_in = 0;
  Bytes forward_out = 0;
  Bytes forward_saves = 0;

  static constexpr auto classes() noexcept {
    return std::array{&StageNeeds::parameters,
                      &StageNeeds::gradients,
                      &StageNeeds::in,
                      &StageNeeds::out,
                      &StageNeeds::saves,
                      &StageNeeds::scratch,
                      &StageNeeds::forward_parameters,
                      &StageNeeds::forward_in,
                      &StageNeeds::forward_out,
                      &StageNeeds::forward_saves};
  }
  /// What a device needs that runs such stages.
  [[nodiscard]] Bytes bytes(Buffering const& buffering) const noexcept {
    return (parameters + forward_parameters) * buffering.parameters +
           gradients * buffering.gradients +
           (in + out + forward_in + forward_out) * buffering.activations +
           (saves + forward_saves) * buffering.saves + scratch;
  }
  /// Whether this is no more than \p most, class by class.
  [[nodiscard]] bool within(StageNeeds const& most) const noexcept {
    auto const sizes = classes();
    return std::all_of(
        sizes.begin(), sizes.end(), [&](auto const size) { return this->*size <= most.*size; });
  }
  /// As large as the larger of both, class by class.
  void include(StageNeeds const& other) noexcept {
    for (auto const size : classes()) {
      this->*size = std::max(this->*size, other.*size);
    }
  }
};

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

  /// What the stage needs of each class.
  [[nodiscard]] StageNeeds const& needs(StageDirection direction, LayerRange range) const {
    return sizes_[index(direction, range)];
  }

 private:
  [[nodiscard]] static StageNeeds sizes_of(StageLayout const& layout);
  [[nodiscard]] std::size_t index(StageDirection direction, LayerRange range) const {
    return ((direction == StageDirection::forward ? 0 : layers_) + range.first) * layers_ +
           range.count - 1;
  }
  [[nodiscard]] StageNeeds& at(StageDirection direction, LayerRange range) {
    return sizes_[index(direction, range)];
  }

  std::size_t layers_;
  std::vector<StageNeeds> sizes_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/stage_budget.ipp>
#endif
