// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The most even cut of a model's first layers into any number of stages.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// \brief For every number of a model's first layers and every number of stages the cut with the
/// least sum of squared times, by dynamic programming.
///
/// Of equals, forward stages become longer and backward stages shorter in execution order. Stages
/// that take longer than twice the mean and the slowest layer are not tried, so that all cuts take
/// O(L^2 log L) steps.
class EvenCuts {
 public:
  /// \p problem and \p ticks must outlive it.
  EvenCuts(PartitionProblem const& problem, StageTicks const& ticks, StageDirection direction);

  /// The cut of the first \p layers layers into \p stages stages, in execution order; nothing when
  /// there is none.
  [[nodiscard]] std::optional<std::vector<LayerRange>> cut(std::size_t layers,
                                                           std::size_t stages) const;

 private:
  static constexpr double unreachable = std::numeric_limits<double>::infinity();

  [[nodiscard]] std::size_t at(std::size_t stages, std::size_t end) const noexcept {
    return stages * layers_ + end;
  }
  [[nodiscard]] Ticks slowest() const;

  StageTicks const& ticks_;
  StageDirection direction_;
  std::size_t layers_;
  std::vector<double> squares_;      // by stages, then layers
  std::vector<std::size_t> begins_;  // likewise: where the last stage in layer order begins
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/even_cuts.ipp>
#endif
