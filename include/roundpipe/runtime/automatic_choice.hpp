// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What \ref automatic chooses.

#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace roundpipe {

/// A cut that was planned.
struct PlannedCut {
  BatchCut cut;
  double seconds = 0;      ///< Of an iteration, by `options.forecast`.
  std::size_t stages = 0;  ///< Forward and backward; 1: all is one stage, nothing runs twice.
};

/// What \ref automatic chose.
struct AutomaticChoice {
  PipelineOptions options;           ///< As given, with the cut, its costs and the network.
  PlannedCut chosen;                 ///< Of \ref tried: as \ref automatic says.
  std::optional<PipelinePlan> plan;  ///< What a pipeline plans with \ref options; always there.
  std::vector<PlannedCut> tried;     ///< In the order of trial.
  double measured_s = 0;             ///< How long layers and links were measured.
};

/// One line: the cut, its forecast, and what came next.
[[nodiscard]] std::string to_string(AutomaticChoice const& choice);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/automatic_choice.ipp>
#endif
