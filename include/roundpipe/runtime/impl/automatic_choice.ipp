// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/runtime/automatic_choice.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

namespace detail {

ROUNDPIPE_INLINE PipelineOptions with_cut(PipelineOptions options, BatchCut const& cut) {
  options.micro_batches_per_round = cut.micro_batches_per_round;
  options.rounds = cut.rounds;
  return options;
}

ROUNDPIPE_INLINE std::optional<Error> refusal_of(PipelineOptions const& options,
                                                 BatchCut const& cut) {
  auto const refused = [](char const* text) { return Error(Errc::invalid_argument, text); };
  if (options.offloaded_micro_batches.value_or(0) > cut.micro_batches_per_round) {
    return refused(
        "no cut of the batch has rounds of as many micro-batches as are to be offloaded");
  }
  auto const& levels = options.save_levels;
  if (levels && std::any_of(levels->begin(), levels->end(), [&](auto const& of_layer) {
        return !of_layer.empty() && of_layer.size() != cut.micro_batches_per_round;
      })) {
    return refused("no cut of the batch has rounds of as many micro-batches as have save levels");
  }
  if (auto const& of_rounds = options.levels_of_rounds;
      !of_rounds.empty() && of_rounds.rbegin()->first >= cut.rounds) {
    return refused("no cut of the batch has as many rounds as have save levels of their own");
  }
  return std::nullopt;
}

ROUNDPIPE_INLINE std::vector<CutStep> cut_steps(std::span<std::vector<BatchCut> const> sizes) {
  std::vector<CutStep> steps;
  std::size_t before = 0;  // the first step of the next larger size
  for (auto const& cuts : sizes) {
    auto const first = steps.size();
    for (auto const& cut : cuts) {
      steps.push_back({cut, first + cuts.size(), steps.empty() ? 0 : before + 1});
    }
    before = first;
  }
  return steps;
}

ROUNDPIPE_INLINE bool CutProgress::add(PlannedCut const& planned) {
  tried_.push_back(planned);
  auto const seconds = planned.seconds;
  constexpr auto after_gain = 1 - least_gain_of_rounds;
  auto const is_slower = seconds > chosen_.seconds;
  if (!best_s_ || seconds <= *best_s_ * (is_slower ? after_gain : 1)) {
    best_s_ = seconds;
    worse_ = 0;
  } else {
    ++worse_;
  }
  auto const has_fewer_rounds = chosen_.cut.rows == planned.cut.rows;
  auto const is_choice = seconds < chosen_.seconds * (has_fewer_rounds ? after_gain : 1);
  if (is_choice) {
    chosen_ = planned;
    worse_sizes_ = 0;
  }
  return is_choice;
}

ROUNDPIPE_INLINE void CutProgress::end_size() {
  if (best_s_) {
    worse_sizes_ += chosen_.cut.rows == tried_.back().cut.rows ? 0 : 1;
  }
  best_s_.reset();
  worse_ = 0;
}

ROUNDPIPE_INLINE void CutRefusals::note(Error const& error) {
  if (error.code() != Errc::over_budget) {
    throw;
  }
  last_ = error;
  auto const* const lack = dynamic_cast<OverBudget const*>(&error);
  if (lack != nullptr && lack->space() == LedgerLine::Space::host) {
    least_of_host_ = lesser(least_of_host_, *lack);
  }
}

ROUNDPIPE_INLINE void CutRefusals::raise() const {
  for (auto const* least : {&least_of_host_, &least_of_device_}) {
    if (*least) {
      throw OverBudget(**least);
    }
  }
  throw last_.value_or(
      Error(Errc::invalid_argument, "the options of another rank go with no cut of the batch"));
}

}  // namespace detail

}  // namespace roundpipe
