// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Remembers which stages fit into a device: asks about each at most once, and only when
/// needed.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe::detail {

/// What \c PartitionProblem::fits says of the stages of one direction that do not hold the last
/// layer.
class FittingStages {
 public:
  /// Stages [first, end) for all ends of a run fit.
  struct Run {
    std::size_t least_end = 0;
    std::size_t most_end = 0;
  };

  /// \p problem must outlive it.
  FittingStages(PartitionProblem const& problem, StageDirection direction);

  /// The stages that begin with layer \p first and fit, in order. All that end at \p end or before
  /// are there; longer ones may be missing.
  [[nodiscard]] std::span<Run const> runs(std::size_t first, std::size_t end);

  /// Whether the layers [first, end) fit.
  [[nodiscard]] bool fits(std::size_t first, std::size_t end);

 private:
  struct Start {
    std::vector<Run> runs;
    std::size_t asked_end = 0;  ///< Nobody has asked about longer stages.
  };

  PartitionProblem const& problem_;
  StageDirection direction_;
  std::vector<Start> starts_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/fitting_stages.ipp>
#endif
