// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/runtime/automatic_choice.hpp>

#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE std::string to_string(AutomaticChoice const& choice) {
  auto const text = [](PlannedCut const& planned) {
    auto const& cut = planned.cut;
    return std::to_string(cut.rounds) + (cut.rounds == 1 ? " round of " : " rounds of ") +
           std::to_string(cut.micro_batches_per_round) + " micro-batches of " +
           std::to_string(cut.rows) + " rows in " + std::to_string(planned.stages) +
           (planned.stages == 1 ? " stage, " : " stages, ") + "compared at " +
           std::to_string(planned.seconds) + " s";
  };
  PlannedCut const* next = nullptr;
  for (auto const& other : choice.tried) {
    auto const is_chosen =
        other.cut.rows == choice.chosen.cut.rows && other.cut.rounds == choice.chosen.cut.rounds;
    if (!is_chosen && (next == nullptr || other.seconds < next->seconds)) {
      next = &other;
    }
  }
  return text(choice.chosen) + "; " + std::to_string(choice.tried.size()) + " tried" +
         (next == nullptr ? std::string() : ", next: " + text(*next));
}

}  // namespace roundpipe
