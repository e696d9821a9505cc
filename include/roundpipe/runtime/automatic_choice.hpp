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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// A cut that was planned.
struct PlannedCut {
  BatchCut cut;
  double seconds = 0;      ///< By `options.forecast`, as of \ref FoundPlan.
  std::size_t stages = 0;  ///< Forward and backward; 1: all is one stage, nothing runs twice.
};

/// What \ref automatic chose.
struct AutomaticChoice {
  PipelineOptions options;           ///< As given, with the cut, its costs and the network.
  PlannedCut chosen;                 ///< Of \ref tried: as \ref automatic says.
  std::optional<PipelinePlan> plan;  ///< What a pipeline plans with \ref options; always there.
  std::vector<PlannedCut> tried;     ///< In the order of trial.
  double measured_s = 0;             ///< How long it took to know what layers cost,
  double planned_s = 0;              ///< and then to choose.
};

/// One line: the cut, its forecast, and what came next.
[[nodiscard]] std::string to_string(AutomaticChoice const& choice);

namespace detail {

/// \p options with \p cut.
[[nodiscard]] PipelineOptions with_cut(PipelineOptions options, BatchCut const& cut);

/// Why \p options do not go with \p cut, if they do not.
[[nodiscard]] std::optional<Error> refusal_of(PipelineOptions const& options, BatchCut const& cut);

/// By this share a cut must be faster than one of its size with fewer rounds, to be the choice; and
/// one that is slower than the choice, not to count as worse. On an H200 each round costs the host
/// some 10 ms of dispatch, which forecasts do not know: with rounds of one micro-batch, 3.1 % of
/// the device's time.
inline constexpr double least_gain_of_rounds = 0.005;

/// After so many cuts of a size in a row that are no better, the search leaves the size; after so
/// many sizes, it looks at later ones only once. One is too few: cuts divide the batch, so from one
/// to the next much changes at once. For 48 sequences of 8,192 tokens of 8B, 24 GiB, three rows are
/// 6 % worse than four, and one row is 6 % better.
inline constexpr std::size_t patience = 2;

/// A cut of a search, in the order of trial.
struct CutStep {
  BatchCut cut;
  std::size_t end_of_size = 0;  ///< The first step of the next size.
  /// Its plan is sought in the knowledge of what so many steps, the first ones, have found: all up
  /// to the first cut of the next larger size, or to that of its own, where there is no larger one.
  /// So cuts of two sizes are planned side by side.
  std::size_t knows = 0;
};
[[nodiscard]] std::vector<CutStep> cut_steps(std::span<std::vector<BatchCut> const> sizes);

/// A cut that is planned.
struct CutTrial {
  static constexpr double never = std::numeric_limits<double>::infinity();

  std::optional<Error> unfit;          ///< Why this rank's options do not go with it.
  std::optional<CostModel> costs;      ///< Of this rank's layers, if they are known.
  std::vector<double> least_s{};       ///< By rank: as if no device ever waited.
  double to_beat_s = never;            ///< What the fastest plan takes of which it knows.
  std::optional<Error> refusal{};      ///< Of all ranks. Else there is a result:
  std::future<PipelinePlan> result{};  ///< This rank's plan.

  [[nodiscard]] bool has_begun() const noexcept { return !least_s.empty(); }
  /// Whether it goes with the options and costs of all ranks.
  [[nodiscard]] bool is_possible() const { return std::ranges::max(least_s) < never; }
};

/// Which of the cuts that were planned is the choice, and when a search has seen enough.
class CutProgress {
 public:
  /// Takes the next cut, in the order of trial. \returns whether it is the choice so far.
  bool add(PlannedCut const& planned);
  /// All cuts of the size of the last one are behind.
  void end_size();

  [[nodiscard]] PlannedCut const& chosen() const noexcept { return chosen_; }
  [[nodiscard]] std::vector<PlannedCut> const& tried() const noexcept { return tried_; }
  /// Whether \ref patience cuts of a size have been worse than one with fewer rounds, or no better
  /// by \ref least_gain_of_rounds where they are slower than the choice; or one has been no better
  /// than the choice, where \ref patience larger sizes were none, either.
  [[nodiscard]] bool leaves_size() const noexcept {
    return worse_ >= patience || (best_s_ && worse_sizes_ >= patience);
  }
  /// So many of the next cuts of a size are tried whatever they take, if it has as many,
  [[nodiscard]] std::size_t sure_cuts() const noexcept {
    return best_s_ ? patience - worse_ : least_cuts(worse_sizes_);
  }
  /// and so many of the next size, behind one of \p rows rows.
  [[nodiscard]] std::size_t sure_cuts_behind(std::int64_t rows) const noexcept {
    return least_cuts(chosen_.cut.rows == rows ? 0 : worse_sizes_ + 1);
  }

 private:
  // Of a size behind so many that were no better than a larger one.
  [[nodiscard]] static constexpr std::size_t least_cuts(std::size_t worse_sizes) noexcept {
    return worse_sizes < patience ? patience + 1 : 1;
  }

  PlannedCut chosen_{.cut = {}, .seconds = std::numeric_limits<double>::infinity()};
  std::vector<PlannedCut> tried_;
  std::optional<double> best_s_;  // of this size; perhaps a bound, if it is no choice
  std::size_t worse_ = 0;         // in a row
  std::size_t worse_sizes_ = 0;   // behind that of the choice
};

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
