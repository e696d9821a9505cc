// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>

#include <span>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE std::string ledger_list(std::span<LedgerLine const> ledger,
                                         LedgerLine::Space space) {
  std::string text;
  for (auto const& line : ledger) {
    if (line.space == space && line.bytes > 0) {
      text += (text.empty() ? "" : ", ") + line.name + ' ' + format_bytes(line.bytes);
    }
  }
  return text;
}

}  // namespace roundpipe
