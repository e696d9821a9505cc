// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The error of a plan that does not fit its budget.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// What \p ledger lists in \p space, on one line: "parameters x2 3.00 GiB, activations in 1 MiB".
[[nodiscard]] std::string ledger_list(std::span<LedgerLine const> ledger, LedgerLine::Space space);

/// The error (over_budget) of a plan that does not fit, with the least budget that would do.
class OverBudget : public Error {
 public:
  OverBudget(std::string message,
             LedgerLine::Space space,
             Bytes least,
             std::vector<LedgerLine> ledger)
      : Error(Errc::over_budget, std::move(message)),
        space_(space),
        least_(least),
        ledger_(std::move(ledger)) {}

  /// Whose budget is too small.
  [[nodiscard]] LedgerLine::Space space() const noexcept { return space_; }
  /// The least that would do, in bytes; 0: none is known.
  [[nodiscard]] Bytes least() const noexcept { return least_; }
  /// Of the plan that this would do for; empty where none is known.
  [[nodiscard]] std::vector<LedgerLine> const& ledger() const noexcept { return ledger_; }

 private:
  LedgerLine::Space space_;
  Bytes least_;
  std::vector<LedgerLine> ledger_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/over_budget.ipp>
#endif
