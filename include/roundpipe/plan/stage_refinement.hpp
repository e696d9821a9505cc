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
#include <roundpipe/memory/stage_region.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// What devices run of a training call and of an evaluation of a partition, see
/// \ref StagePlan::turns; and whether rounds overlap.
using TurnFunction = std::function<std::vector<DeviceTurns>(Partition const&, bool)>;

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

/// A fused stage of the last \p fused of \p layers layers, and as many stages each way as asked
/// for, which share the other layers as evenly as can be. Forward stages of earlier layers are the
/// shorter ones, and so are the backward stages that run last, if \p ends_short, or else those that
/// run first. Nothing where that is not possible.
[[nodiscard]] std::optional<Partition> even_partition(std::size_t layers,
                                                      std::size_t fused,
                                                      std::size_t forwards,
                                                      std::size_t backwards,
                                                      bool ends_short);

/// \brief Stages beside a fused stage of any number of layers.
///
/// Layers of the fused stage run forward once, so memory is best spent on it; other stages should
/// be as long as it is, and no longer than fits beside it. So the search goes over the layers of
/// the fused stage and of backward stages, and takes forward stages as long as fit. \ref
/// Partitioner cuts within these lengths. \ref SlotSimulation ranks the partitions: it knows
/// recomputation and imbalance, but no copies.
class StageRefinement {
 public:
  /// The references must outlive this. \p held: of the budget, what a device holds for such plans
  /// besides their memory.
  StageRefinement(WorkingSetChoice const& choice,
                  Buffering const& buffering,
                  PlanOptions const& options,
                  TurnFunction const& turns,
                  Bytes held)
      : choice_(choice),
        buffering_(buffering),
        options_(options),
        turns_(turns),
        budget_(options.device_memory - std::min(options.device_memory, held)) {}

  /// For each number of layers in the fused stage the best partition for which \p host_has_room,
  /// the fastest first; of equals, the one with the fewest stages. None for a number with which a
  /// call takes so many seconds, if no device ever waits, that it \p loses.
  [[nodiscard]] std::vector<Partition> partitions(
      std::function<bool(Partition const&)> const& host_has_room,
      std::function<bool(double)> const& loses) const;

  /// A fused stage of \p last layers, and beside it the best stages whose backward has up to \p
  /// longest layers; nothing when there are none.
  [[nodiscard]] std::optional<Partition> partition(std::size_t last, std::size_t longest) const;

 private:
  [[nodiscard]] std::size_t layers() const noexcept { return choice_.costs.size(); }

  /// The seconds of a call with \p fused, if no device ever waits.
  [[nodiscard]] double least_seconds(LayerRange fused) const;

  /// What a stage needs whatever runs before and after it.
  [[nodiscard]] StageNeeds needs(StageDirection direction, LayerRange range) const {
    return choice_.sizes.needs(direction, range).in_region(buffering_);
  }

  /// What the fused stage of \p fused layers needs, and every layer before it by itself.
  [[nodiscard]] StageNeeds least(LayerRange fused) const;

  /// The layers of forward stages before \p fused that fit beside stages which need \p most, if
  /// these are the only ones.
  [[nodiscard]] std::size_t longest_forward(StageNeeds const& most, LayerRange fused) const;

  /// The layers of forward stages before \p fused of which each runs in turn with one of \p
  /// backward layers, or with the fused stage.
  [[nodiscard]] static std::size_t forward_beside(LayerRange fused, std::size_t backward);

  /// The best stages before \p fused within the budget, those of a backward stage no larger than
  /// the last \p backward layers, those of a forward stage as long as can be; nothing when there
  /// are none.
  [[nodiscard]] std::optional<Partition> fit(LayerRange fused,
                                             std::size_t backward,
                                             StageNeeds const& most) const;

  /// How many layers a stage before the fused one has, and what the last so many need.
  struct Limit {
    std::size_t count = 0;
    StageNeeds most;
  };
  struct Limits {
    Limit forward;
    Limit backward;

    [[nodiscard]] Limit const& of(StageDirection direction) const noexcept {
      return direction == StageDirection::forward ? forward : backward;
    }
  };
  [[nodiscard]] Limit limit_of(StageDirection direction,
                               LayerRange fused,
                               std::size_t count) const {
    return {count, needs(direction, {fused.first - count, count})};
  }
  [[nodiscard]] bool is_within(Limits const& limits,
                               StageDirection direction,
                               LayerRange range) const {
    return choice_.sizes.needs(direction, range)
        .within_region(limits.of(direction).most, buffering_);
  }

  /// Whether a stage of \p partition, other than the fused one, needs more than \p limits say.
  [[nodiscard]] bool has_larger(Partition const& partition, Limits const& limits) const;

  /// Stages before \p fused that need no more than \p limits say, or than \p any and have as few
  /// layers; nothing when there are none.
  [[nodiscard]] std::optional<Partition> cut(LayerRange fused,
                                             Limits const& limits,
                                             StageNeeds const* any) const;

  /// What a device needs for the stages of \p partition.
  [[nodiscard]] Bytes bytes_of(Partition const& partition) const;

  /// What devices run of \p partition: the same for all with as many stages each way.
  [[nodiscard]] std::vector<DeviceTurns> const& turns_of(Partition const& partition) const;

  WorkingSetChoice const& choice_;
  Buffering const& buffering_;
  PlanOptions const& options_;
  TurnFunction const& turns_;
  Bytes budget_;
  mutable std::map<std::pair<std::size_t, std::size_t>, std::vector<DeviceTurns>> known_turns_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_refinement.ipp>
#endif
