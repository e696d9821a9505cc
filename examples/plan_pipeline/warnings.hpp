// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Warns of the properties of a plan that will spoil it in practice.

#include <string>
#include <vector>

#include "planning.hpp"
#include "problem.hpp"

namespace plan_pipeline {

/// Adds one sentence for each of: a stage whose forward takes less than 2 ms a micro-batch; stages
/// more than 20 % apart; transfers that do not hide; stages bound to devices with fewer than 9 (P -
/// 1) micro-batches; rounds of fewer micro-batches than devices.
[[nodiscard]] std::vector<std::string> warnings_of(Outcome const& outcome, Problem const& problem);

}  // namespace plan_pipeline
