// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The command line of budget_sweep.

#include <train_throughput/options.hpp>

#include <optional>
#include <vector>

namespace budget_sweep {

using throughput::Bytes;

struct Options {
  train_throughput::Options training;  ///< But for the device's budget.
  std::vector<Bytes> budgets;          ///< Of each device; 0: what it has.
  bool against = false;  ///< Whether plans that are pinned run beside those that are chosen.
  Bytes pinned = 0;      ///< Host memory that is pinned once for all runs.
};

/// As \ref train_throughput::parse_options.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace budget_sweep
