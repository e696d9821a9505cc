// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Prints what the library chooses and why, its ledger, and the frontier of its plans.

#include <ostream>
#include <span>
#include <string>

#include "adaptive.hpp"

namespace plan_pipeline {

/// Each decision in a line with its reason, the forecast and the ledger. Forecasts the plans that
/// decisions went against.
[[nodiscard]] std::string adaptive_text(AdaptivePlanner const& planner, AdaptivePlan const& plan);

/// One row for each plan.
[[nodiscard]] std::string frontier_text(AdaptivePlanner const& planner,
                                        std::span<AdaptivePlan const> plans);

/// Tokens a second by device memory. The line is what a budget between two plans reaches at least.
void write_frontier(std::ostream& out,
                    AdaptivePlanner const& planner,
                    std::span<AdaptivePlan const> plans);

}  // namespace plan_pipeline
