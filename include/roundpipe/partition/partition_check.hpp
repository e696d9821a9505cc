// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks costs, and whether stages are a partition of a model and fit.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace roundpipe {

/// \throws Error (invalid_argument) for no layers, or a cost that is negative or not finite.
void check(std::span<LayerCost const> costs);

/// \throws Error (invalid_argument) where \p partition, the answer of a policy, breaks rule 1 of
/// \ref
///         PartitionPolicy for \p layers layers.
void check(Partition const& partition, std::size_t layers);

/// Whether \p partition is one of \p layers layers, as \ref Partition describes it: no stage is
/// empty, all lie in execution order, and each layer runs forward and backward once.
[[nodiscard]] bool covers(Partition const& partition, std::size_t layers);

/// Whether each stage of \p partition fits, as \p problem says.
[[nodiscard]] bool fits(PartitionProblem const& problem, Partition const& partition);

/// The first stage of \p partition that does not fit, in a few words: "forward stage 1 holds 2
/// layers from layer 3 on, and does not fit". None: each fits.
[[nodiscard]] std::optional<std::string> unfit_stage(PartitionProblem const& problem,
                                                     Partition const& partition);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/partition_check.ipp>
#endif
