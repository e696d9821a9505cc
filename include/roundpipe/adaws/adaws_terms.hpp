// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Says a plan for one device in the terms of AdaWS.

#include <roundpipe/adaws/adaws_problem.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_plan.hpp>

namespace roundpipe {

/// The configuration of AdaWS that does what \p plan does, with a stage for a layer.
///
/// Chunks are micro-batches of a round. R_param, R_act and R_grad are the entries of the rings of
/// parameters, saves and parameter gradients. A_save is the share, in bytes and over all rounds of
/// a call, that the host keeps of what the layers of forward stages save; 1 where these save
/// nothing. The fused stage recomputes nothing, and is not counted.
/// \throws Error (unsupported) for more devices than one, which AdaWS has no terms for.
[[nodiscard]] AdawsConfiguration adaws_terms(ModelDescription const& model,
                                             StagePlan const& plan,
                                             PlanOptions const& options);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/adaws/impl/adaws_terms.ipp>
#endif
