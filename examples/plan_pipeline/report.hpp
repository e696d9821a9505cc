// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Prints plans: as a table, as JSON, as pictures.

#include <roundpipe/concepts/partition_policy.hpp>

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "options.hpp"
#include "planning.hpp"
#include "problem.hpp"

namespace plan_pipeline {

/// The layers of each of \p stages.
[[nodiscard]] std::vector<std::size_t> layer_counts(
    std::vector<roundpipe::LayerRange> const& stages);

/// "2, 3 (4x)"; "none" where there is none.
[[nodiscard]] std::string counts_text(std::vector<std::size_t> const& counts);

/// One object for each schedule.
void write_json(std::ostream& out, std::span<Outcome const> outcomes);

/// One row for each schedule; for a single schedule its stages and devices, too.
[[nodiscard]] std::string table_text(Problem const& problem,
                                     Options const& options,
                                     std::span<Outcome const> outcomes);

/// The timeline of one iteration, in the steady state if there is one.
void write_svg(std::ostream& out, Outcome const& outcome);

/// The whole timeline, for Perfetto.
void write_trace(std::ostream& out, Outcome const& outcome);

}  // namespace plan_pipeline
