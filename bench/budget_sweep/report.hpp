// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The runs of a sweep, and their output.

#include <roundpipe/nn/transformer_config.hpp>
#include <train_throughput/options.hpp>
#include <train_throughput/outcome.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace budget_sweep {

/// Which plan a run is of.
enum class Plan {
  chosen,         ///< What the library chooses.
  recomputation,  ///< Nothing is kept but checkpoints between stages.
  offloading,     ///< All saves of as many micro-batches as the host has room for are kept.
};

[[nodiscard]] char const* name_of(Plan plan) noexcept;

/// A run, or what the library said instead.
struct Run {
  Plan plan = Plan::chosen;
  train_throughput::Options options;  ///< With the cut that was run.
  std::optional<train_throughput::Outcome> outcome;
  std::string refusal;  ///< Where there is no outcome.
};

/// The runs of one budget; the first is of the chosen plan, and others may be, too.
using BudgetRuns = std::vector<Run>;

/// How many times as many tokens a second the chosen plan trains as \p plan does, by the mean time
/// of the runs of each; none where either was refused or not run.
[[nodiscard]] std::optional<double> ratio_to(BudgetRuns const& runs,
                                             Plan plan,
                                             roundpipe::nn::TransformerConfig const& config);

/// What must not be: more device memory than the budget, or an arena that differs from its ledger.
/// One sentence each.
[[nodiscard]] std::vector<std::string> faults_of(Run const& run);

/// Of the run at \p index: the object of train_throughput, and what the sweep adds.
[[nodiscard]] nlohmann::ordered_json to_json(BudgetRuns const& runs,
                                             std::size_t index,
                                             roundpipe::nn::TransformerConfig const& config);

/// The table of all runs.
void print(std::ostream& out,
           std::span<BudgetRuns const> budgets,
           roundpipe::nn::TransformerConfig const& config);

}  // namespace budget_sweep
