// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What comes of the cuts of a batch: a choice of \ref automatic, or why there is none.

#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace roundpipe {

/// A cut that was planned.
struct PlannedCut {
  BatchCut cut;
  double seconds = 0;      ///< Of an iteration, by `options.forecast`.
  std::size_t stages = 0;  ///< Forward and backward; 1: all is one stage, nothing runs twice.
};

/// What \ref automatic chose.
struct AutomaticChoice {
  PipelineOptions options;           ///< As given, with the cut, its costs and the network.
  PlannedCut chosen;                 ///< Of \ref tried: as \ref automatic says.
  std::optional<PipelinePlan> plan;  ///< What a pipeline plans with \ref options; always there.
  std::vector<PlannedCut> tried;     ///< In the order of trial.
  double measured_s = 0;             ///< How long it took to know what layers cost.
};

/// One line: the cut, its forecast, and what came next.
[[nodiscard]] std::string to_string(AutomaticChoice const& choice);

namespace detail {

/// Why \p options do not go with \p cut, if they do not.
[[nodiscard]] std::optional<Error> refusal_of(PipelineOptions const& options, BatchCut const& cut);

/// The refusals of cuts.
class CutRefusals {
 public:
  /// Keeps \p refusal, if there is one.
  void keep(std::optional<Error> const& refusal) { last_ = refusal ? refusal : last_; }
  /// In a catch block: keeps \p error, or throws it again if it is none of a plan that does not
  /// fit.
  void note(Error const& error);
  /// Keeps the \ref OverBudget of a device that \p plan throws, if it names less than those before.
  template <class F>
  void note_least(F const& plan) {
    try {
      plan();
    } catch (OverBudget const& lack) {
      least_of_device_ = lesser(least_of_device_, lack);
    }
  }
  /// \throws The refusal that a user can do most with: of those for want of host memory that which
  ///         takes least, for devices have room for that; else the least noted; else the last.
  [[noreturn]] void raise() const;

 private:
  [[nodiscard]] static OverBudget lesser(std::optional<OverBudget> const& a, OverBudget const& b) {
    return a && a->least() <= b.least() ? *a : b;
  }

  std::optional<Error> last_;
  std::optional<OverBudget> least_of_host_;
  std::optional<OverBudget> least_of_device_;
};

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/automatic_choice.ipp>
#endif
