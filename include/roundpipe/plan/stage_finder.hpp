// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds stages that fit a budget, for one working set and one way of buffering.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/over_budget.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/plan/stage_refinement.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// `PartitionPolicy::partition`.
using PartitionFunction = std::function<Partition(PartitionProblem const&)>;

/// The faster of two; of equals, \p a.
[[nodiscard]] std::optional<FoundPlan> faster(std::optional<FoundPlan> a,
                                              std::optional<FoundPlan> b);

/// Asks a partition policy, and where it yields to the forecast, \ref StageRefinement.
class StageFinder {
 public:
  /// The references must outlive this. \p yields_to_forecast: as \ref roundpipe::yields_to_forecast
  /// says of the policy.
  StageFinder(PartitionFunction partition,
              TurnFunction turns,
              bool yields_to_forecast,
              std::size_t activations_in_flight,
              ModelDescription const& model,
              ParameterBlocks const& blocks,
              PlanOptions const& options,
              PlanForecast const& forecast)
      : partition_(std::move(partition)),
        turns_(std::move(turns)),
        yields_to_forecast_(yields_to_forecast),
        modes_(options.buffering ? std::vector{*options.buffering}
                                 : std::vector<Buffering>{{2, 2, activations_in_flight, 3},
                                                          {2, 1, activations_in_flight, 3},
                                                          {1, 1, activations_in_flight},
                                                          {1, 1, 1}}),
        model_(model),
        blocks_(blocks),
        options_(options),
        forecast_(forecast) {}

  /// The ways of buffering, from the fastest to the most frugal; one, where the options pin it.
  [[nodiscard]] std::vector<Buffering> const& modes() const noexcept { return modes_; }

  /// The policy's stages, within the device budget, without a forecast.
  [[nodiscard]] std::optional<StagePlan> fitting(WorkingSetChoice const& choice,
                                                 Buffering const& buffering) const {
    return fit(partition_, choice, buffering, options_.device_memory);
  }

  /// The same with its forecast.
  [[nodiscard]] std::optional<FoundPlan> find(WorkingSetChoice const& choice,
                                              Buffering const& buffering) const {
    return with_forecast(fitting(choice, buffering));
  }

  /// \p found, or the plan of one of the best partitions that \ref StageRefinement finds with \p
  /// buffering, whichever is faster by forecast. Where the policy does not yield: \p found.
  [[nodiscard]] std::optional<FoundPlan> refine(WorkingSetChoice const& choice,
                                                Buffering const& buffering,
                                                std::optional<FoundPlan> found) const;

  /// \ref find, then \ref refine. The host has room for the plan.
  [[nodiscard]] std::optional<FoundPlan> best(WorkingSetChoice const& choice,
                                              Buffering const& buffering) const;

  /// The best stages of such lengths, see \ref StageRefinement::partition; nothing where the policy
  /// does not yield.
  [[nodiscard]] std::optional<Partition> with_lengths(WorkingSetChoice const& choice,
                                                      Buffering const& buffering,
                                                      std::size_t fused,
                                                      std::size_t longest) const;

  /// As \ref even_partition; nothing, too, where the policy does not yield, or a call would have
  /// fewer slots than devices.
  [[nodiscard]] std::optional<Partition> even(std::size_t fused,
                                              std::size_t forwards,
                                              std::size_t backwards,
                                              bool ends_short = false) const;

  /// The plan of given stages, if devices and the host have room for it.
  [[nodiscard]] std::optional<FoundPlan> evaluate(WorkingSet const& set,
                                                  Buffering const& buffering,
                                                  Partition partition) const {
    return with_forecast(plan_of(set, buffering, std::move(partition)));
  }

  /// The plan of given stages as it is, without a forecast, likewise.
  [[nodiscard]] std::optional<StagePlan> plan_of(WorkingSet const& set,
                                                 Buffering const& buffering,
                                                 Partition partition) const;

  /// The plan of \p partition, of which devices keep \p resident blocks.
  [[nodiscard]] StagePlan lay_out(Partition partition,
                                  Buffering const& buffering,
                                  WorkingSet const& set,
                                  ResidentBlocks resident = {}) const;

  /// The error of a search that finds nothing for \p choice.
  [[nodiscard]] OverBudget refusal(WorkingSetChoice const& choice) const;

 private:
  /// Whether devices and the host have room for \p plan.
  [[nodiscard]] bool has_room(StagePlan const& plan) const {
    return plan.memory.bytes + options_.held_by(plan) <= options_.device_memory &&
           options_.host_has_room(plan);
  }

  /// \p plan with its forecast. Devices keep as many blocks as there is room for, if they may: so
  /// whoever compares plans knows what the links have left for saves.
  [[nodiscard]] FoundPlan keep_parameters(StagePlan plan) const;
  [[nodiscard]] std::optional<FoundPlan> with_forecast(std::optional<StagePlan> plan) const {
    return plan ? std::optional(keep_parameters(*std::move(plan))) : std::nullopt;
  }

  /// The stages of \p partition within \p budget.
  [[nodiscard]] std::optional<StagePlan> fit(PartitionFunction const& partition,
                                             WorkingSetChoice const& choice,
                                             Buffering const& buffering,
                                             Bytes budget) const;

  /// Asks for stages that take less than \p longest_s and need no more than \p most bytes each,
  /// those of several layers no more than \p limit. \p choice and \p buffering must outlive it.
  [[nodiscard]] PartitionProblem problem_of(WorkingSetChoice const& choice,
                                            Buffering const& buffering,
                                            Bytes most,
                                            Bytes limit,
                                            double longest_s) const;

  /// The answer to \ref problem_of; none where there are no such stages.
  [[nodiscard]] std::optional<Partition> cut(PartitionFunction const& partition,
                                             WorkingSetChoice const& choice,
                                             Buffering const& buffering,
                                             Bytes most,
                                             Bytes limit,
                                             double longest_s) const;

  /// The stage of the policy's answer that does not fit the budget, where the policy gives one in
  /// place of an error.
  [[nodiscard]] std::optional<std::string> unfit_answer(WorkingSetChoice const& choice) const;

  /// A budget, and what fits it.
  struct LeastPlan {
    Bytes budget = 0;
    StagePlan plan;
  };

  /// The smallest budget, at least \p least, within which \p partition fits in any mode: by
  /// bisection. All sizes are multiples of 256 bytes. None: it fits in none that a device has.
  [[nodiscard]] std::optional<LeastPlan> smallest_budget(PartitionFunction const& partition,
                                                         WorkingSetChoice const& choice,
                                                         Bytes least) const;

  /// What a device holds besides the memory of a plan, nearly so whatever the stages are: it
  /// follows from the host's memory. Taken from stages of one layer each.
  [[nodiscard]] Bytes held_by_stages(WorkingSetChoice const& choice) const;

  PartitionFunction partition_;
  TurnFunction turns_;
  bool yields_to_forecast_;
  std::vector<Buffering> modes_;
  ModelDescription const& model_;
  ParameterBlocks const& blocks_;
  PlanOptions const& options_;
  PlanForecast const& forecast_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_finder.ipp>
#endif
