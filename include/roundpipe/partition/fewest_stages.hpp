// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Covers the first layers of a model with as few stages as can be, none of them too slow.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/partition/fitting_stages.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <cstddef>
#include <limits>
#include <vector>

namespace roundpipe::detail {

/// \brief For every number of a model's first layers the fewest stages of one direction that cover
/// them; a breadth-first search.
///
/// The search reaches each number of layers once, those that take fewer stages first. Usually the
/// stages that begin with a layer and fit are one run of lengths; then a search takes O(L) steps.
/// More runs take proportionally more steps.
class FewestStages {
 public:
  /// \p problem and \p ticks must outlive it.
  FewestStages(PartitionProblem const& problem, StageTicks const& ticks, StageDirection direction)
      : ticks_(ticks),
        direction_(direction),
        fitting_(problem, direction),
        last_ends_(ticks.layers()),
        stages_(ticks.layers()),
        before_(ticks.layers()),
        open_(ticks.layers() + 1) {
    reached_.reserve(ticks.layers());
  }

  [[nodiscard]] StageDirection direction() const noexcept { return direction_; }

  /// Searches with stages of \p t_max at most. \returns the shortest time of a stage that is
  /// longer: any limit below that gives the same answers.
  Ticks cover(Ticks t_max);

  // Of the latest search:

  /// Whether the first \p count layers can be covered.
  [[nodiscard]] bool reaches(std::size_t count) const { return stages_[count] != unreachable; }
  /// The fewest stages that cover them.
  [[nodiscard]] std::size_t stages(std::size_t count) const { return stages_[count]; }
  /// The time of the slowest of those stages.
  [[nodiscard]] Ticks slowest(std::size_t count) const;
  /// The end of the longest stage from layer \p first on that is not too slow, whether it fits or
  /// not; below the number of layers.
  [[nodiscard]] std::size_t last_end(std::size_t first) const { return last_ends_[first]; }

  /// Whether the layers [first, end) fit into a device.
  [[nodiscard]] bool fits(std::size_t first, std::size_t end) { return fitting_.fits(first, end); }
  [[nodiscard]] Ticks ticks(std::size_t first, std::size_t end) const {
    return ticks_.stage(direction_, first, end);
  }

 private:
  static constexpr std::size_t unreachable = std::numeric_limits<std::size_t>::max();

  Ticks find_last_ends(Ticks t_max);

  /// The least number of layers, \p count or more, that the search has not reached.
  [[nodiscard]] std::size_t first_open(std::size_t count);

  StageTicks const& ticks_;
  StageDirection direction_;
  FittingStages fitting_;
  std::vector<std::size_t> last_ends_;  // by first layer
  std::vector<std::size_t> stages_;     // by number of layers
  std::vector<std::size_t> before_;     // likewise: where the last of the stages begins
  std::vector<std::size_t> open_;       // likewise: itself, or a larger one that may be open
  std::vector<std::size_t> reached_;    // numbers of layers, the fewest stages first
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/fewest_stages.ipp>
#endif
