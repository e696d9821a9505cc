// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds stages that share a device's memory well: none makes a ring larger than it pays.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// What \p partition() returns, or nothing when it finds no stages that fit (over_budget).
template <class F>
[[nodiscard]] std::optional<Partition> partition_if_any(F const& partition) {
  try {
    return partition();
  } catch (Error const& error) {
    if (error.code() != Errc::over_budget) {
      throw;
    }
    return std::nullopt;
  }
}

/// \brief Stages beside a fused stage of any number of layers.
///
/// All stages of a device share its rings, which are as large as the largest stage needs. Layers of
/// the fused stage run forward once, so memory is best spent on it; other stages should be as long
/// as it is, and no longer than fits beside it. So the search goes over the layers of the fused
/// stage and of backward stages. What both need is a limit for all stages, class by class, and \ref
/// Partitioner cuts within it. \ref SlotSimulation ranks the partitions: it knows recomputation and
/// imbalance, but no copies.
class StageRefinement {
 public:
  /// The references must outlive this.
  StageRefinement(WorkingSetChoice const& choice,
                  Buffering const& buffering,
                  PlanOptions const& options)
      : choice_(choice), buffering_(buffering), options_(options) {}

  /// For each number of layers in the fused stage the best partition, the fastest first; of equals,
  /// the one with the fewest stages.
  [[nodiscard]] std::vector<Partition> partitions() const;

 private:
  [[nodiscard]] std::size_t layers() const noexcept { return choice_.costs.size(); }

  /// What the fused stage of \p fused layers needs, and every layer before it by itself.
  [[nodiscard]] StageNeeds least(LayerRange fused) const;

  /// \p most, and forward stages before \p fused as long as they fit beside it.
  [[nodiscard]] StageNeeds with_forward(StageNeeds most, LayerRange fused, Bytes budget) const;

  /// \p most, and forward stages before \p fused of which each runs in turn with one of \p backward
  /// layers, or with the fused stage.
  [[nodiscard]] StageNeeds with_forward_beside(StageNeeds most,
                                               LayerRange fused,
                                               std::size_t backward) const;

  /// Stages before \p fused that need no more than \p most; nothing when there are none.
  [[nodiscard]] std::optional<Partition> cut(LayerRange fused, StageNeeds const& most) const;

  WorkingSetChoice const& choice_;
  Buffering const& buffering_;
  PlanOptions const& options_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_refinement.ipp>
#endif
