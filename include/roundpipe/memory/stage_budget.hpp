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
#include <roundpipe/memory/stage_region.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
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
  bool reads_to_the_end = true;  ///< \ref StageLayout::reads_to_the_end

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
  /// With all that lies in the region of stages (\ref lay_out_region) as scratch, as much as a
  /// stage needs there whatever runs before and after it.
  [[nodiscard]] StageNeeds in_region(Buffering const& buffering) const noexcept {
    auto needs = *this;
    needs.scratch += parameters * buffering.parameters + gradients;
    needs.parameters = needs.gradients = 0;
    return needs;
  }
  /// Whether \ref in_region is no more than \p most, which is of a region, too, class by class.
  [[nodiscard]] bool within_region(StageNeeds const& most,
                                   Buffering const& buffering) const noexcept {
    return scratch + parameters * buffering.parameters + gradients <= most.scratch &&
           in <= most.in && out <= most.out && saves <= most.saves &&
           forward_parameters <= most.forward_parameters && forward_in <= most.forward_in &&
           forward_out <= most.forward_out && forward_saves <= most.forward_saves;
  }
  /// What it needs of the region, by itself.
  [[nodiscard]] RegionNeeds region() const noexcept {
    return {parameters, gradients, scratch, reads_to_the_end};
  }
  /// As large as the larger of both, class by class.
  void include(StageNeeds const& other) noexcept {
    for (auto const size : classes()) {
      this->*size = std::max(this->*size, other.*size);
    }
    reads_to_the_end = reads_to_the_end && other.reads_to_the_end;
  }
};

/// The most bytes that a stage of a partition needs, of those of one layer and of several.
struct LargestStages {
  Bytes of_one = 0;
  Bytes of_several = 0;  ///< 0: no stage can be cut.
};

/// The sizes of all stages that a partition may choose from, each computed when it is first asked
/// for: with a tight budget, few are. So two threads must not ask one object at a time.
class StageBudget {
 public:
  /// \p model and \p blocks must outlive this.
  StageBudget(ModelDescription const& model,
              ParameterBlocks const& blocks,
              WorkingSet working_set = {})
      : model_(model),
        blocks_(blocks),
        working_set_(std::move(working_set)),
        sizes_(2 * model.size() * model.size()) {}

  /// What a device needs to run this stage alone: ring entries times their counts, and scratch.
  [[nodiscard]] Bytes bytes(StageDirection direction,
                            LayerRange range,
                            Buffering const& buffering) const;

  /// The layer that needs the most bytes as a stage of its own, and these bytes.
  [[nodiscard]] std::pair<std::size_t, Bytes> largest_layer(Buffering const& buffering) const;

  /// What the largest stages of \p partition need, as by \ref bytes.
  [[nodiscard]] LargestStages largest_stages(Partition const& partition,
                                             Buffering const& buffering) const;

  /// What the stage needs of each class.
  [[nodiscard]] StageNeeds const& needs(StageDirection direction, LayerRange range) const;

 private:
  [[nodiscard]] static StageNeeds sizes_of(StageLayout const& layout);
  [[nodiscard]] StageNeeds compute(StageDirection direction, LayerRange range) const;

  ModelDescription const& model_;
  ParameterBlocks const& blocks_;
  WorkingSet working_set_;
  mutable std::vector<std::optional<StageNeeds>> sizes_;  // by direction, first layer and count
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/stage_budget.ipp>
#endif
