// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/memory/over_budget.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace over_budget_test {

using namespace roundpipe;
using Space = LedgerLine::Space;

TEST_CASE("a ledger on one line has what takes room in one space") {
  std::vector<LedgerLine> const ledger{{Space::device, "saves x3", 3_MiB},
                                       {Space::host, "batches", 1_GiB},
                                       {Space::device, "nothing", 0},
                                       {Space::device, "activations in", 512}};
  CHECK(ledger_list(ledger, Space::device) == "saves x3 3.00 MiB, activations in 512 B");
  CHECK(ledger_list(ledger, Space::host) == "batches 1.00 GiB");
  CHECK(ledger_list({}, Space::host).empty());
}

TEST_CASE("what a budget lacks is an error with the least that would do") {
  OverBudget const lack("the host is full", Space::host, 5_GiB, {{Space::host, "all", 5_GiB}});
  Error const& error = lack;
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message() == "the host is full");
  CHECK(lack.space() == Space::host);
  CHECK(lack.least() == 5_GiB);
  CHECK(lack.ledger().size() == 1);
}

}  // namespace over_budget_test
