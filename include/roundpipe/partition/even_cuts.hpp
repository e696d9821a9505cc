// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The most even cut of a model's first layers into any number of stages.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/partition/least_squares_cuts.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// \brief For every number of a model's first layers and every number of stages the cut with the
/// least sum of squared times.
///
/// Of equals, forward stages become longer and backward stages shorter in execution order. It does
/// not try stages that take longer than twice the mean and the slowest layer, so all cuts take
/// O(L^2 log L) steps.
class EvenCuts {
 public:
  EvenCuts(PartitionProblem const& problem, StageTicks const& ticks, StageDirection direction);

  /// The cut of the first \p layers layers into \p stages stages, in execution order; nothing when
  /// there is none. Both are less than the number of the model's layers.
  [[nodiscard]] std::optional<std::vector<LayerRange>> cut(std::size_t layers,
                                                           std::size_t stages) const;

 private:
  StageDirection direction_;
  LeastSquaresCuts cuts_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/even_cuts.ipp>
#endif
