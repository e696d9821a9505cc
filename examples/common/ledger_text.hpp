// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A plan's memory by class, for people.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>

namespace examples {

/// A line for each class, and one for the sum: of a device, and of the host.
inline std::string ledger_text(std::span<roundpipe::LedgerLine const> ledger) {
  using Space = roundpipe::LedgerLine::Space;
  std::string text;
  for (auto const& [space, name] :
       {std::pair(Space::device, "each device"), std::pair(Space::host, "the host")}) {
    auto const bytes = roundpipe::total_bytes(ledger, space);
    text += fmt::format("ledger of {}: {}\n", name, roundpipe::format_bytes(bytes));
    for (auto const& entry : ledger) {
      if (entry.space == space) {
        text += fmt::format("  {:<56}{:>12}\n", entry.name, roundpipe::format_bytes(entry.bytes));
      }
    }
  }
  return text;
}

}  // namespace examples
