// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Says what a pipeline's plan has decided, and why.

#include <roundpipe/config.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <string>
#include <vector>

namespace roundpipe {

/// A decision of a plan, for people.
struct Decision {
  std::string name;    ///< Such as "stages" or "saves".
  std::string value;   ///< What the plan does.
  std::string reason;  ///< As far as the plan and the options show it; empty where there is none.
};

/// One line: name, value, reason.
[[nodiscard]] std::string to_string(Decision const& decision);

/// All that was decided for \p plan, which was made with \p options: stages, checkpoints, saves,
/// overlap of rounds, parameters and boundaries that stay, with several devices what goes from one
/// to another, entries of rings, and for one device the same in the terms of AdaWS. Plans nothing
/// and forecasts nothing. What decided on micro-batches and rounds, \ref AutomaticChoice says.
[[nodiscard]] std::vector<Decision> explain(PipelinePlan const& plan,
                                            PipelineOptions const& options);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/explain.ipp>
#endif
