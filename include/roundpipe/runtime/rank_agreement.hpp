// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the ranks of a training tell each other besides gradients: that they train the same,
/// and losses.

#include <roundpipe/config.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <vector>

namespace roundpipe {

/// An operation of all ranks: each compares with rank 0 what all must have in common. Devices,
/// budgets, stages and threads may differ.
/// \throws Error (invalid_argument) that names the rank and what differs; as the group does.
void require_same_training(AnyProcessGroup group,
                           PipelinePlan const& plan,
                           PipelineOptions const& options,
                           int staleness,
                           bool copies_parameters);

/// The losses of \p call's micro-batches; of all ranks where these share the call, in the order in
/// which one process would have them. Then it is an operation of all ranks.
/// \throws Error as the group does.
[[nodiscard]] std::vector<double> losses_of(AnyProcessGroup group, CallData const& call);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/rank_agreement.ipp>
#endif
