// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The search for the cut of a batch into micro-batches and rounds that is fastest by
/// forecast.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/costs_by_rows.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/runtime/automatic_choice.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/runtime/probe/cost_file.hpp>
#include <roundpipe/runtime/rank_division.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/system/bounded_async.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// The search of \ref automatic, by all ranks of a group: each step that one of them takes, all
/// take. Its parts of a batch are those of a rank.
template <class Model, DeviceList D>
class CutSearch {
 public:
  /// The references must outlive this.
  CutSearch(Model const& model,
            OptimizerNeeds optimizer,
            D& devices,
            Policies const& policies,
            PipelineOptions const& options,
            std::size_t threads)
      : model_(model),
        optimizer_(std::move(optimizer)),
        devices_(devices),
        planner_(policies.planner()),
        group_(policies.group),
        options_(
            complete_options(group_.size() > 1 ? with_ranks(options, group_) : options, devices)),
        device_(devices.device_properties(DeviceId(0))),
        async_(threads) {
    options_.network = network_of(group_, devices_, options_);
    choice_.options = options;
    choice_.options.network = options_.network;
    options_.known_costs.reset();                     // each size has its own
    options_.names_least_budget = group_.size() > 1;  // refuse() does otherwise
    if (!options_.forecast) {
      options_.forecast = forecast_training_seconds;
    }
  }

  [[nodiscard]] std::size_t ranks() const noexcept { return options_.ranks; }

  /// Finds what layers take at \p sizes of micro-batches of \p batch, the largest first, for \ref
  /// try_cuts. It measures only at the largest and the smallest size that can be, and, where
  /// several are between, at one in the middle, one right after the other: devices that rest
  /// meanwhile cool down, and clock higher for a while.
  void find_costs(BatchShape batch, std::span<std::vector<BatchCut> const> sizes) {
    (void)of_all_ranks(group_, [&] {
      auto const finds = [&](auto const& cuts) { return finds_costs(batch, cuts); };
      if (options_.costs == CostSource::measured) {
        auto const largest = std::ranges::find_if(sizes, finds);
        auto const behind = std::find_if(sizes.rbegin(), sizes.rend(), finds).base();
        if (auto const count = behind - largest; count > 3) {
          (void)finds(largest[count / 2]);
        }
      } else {
        std::ranges::for_each(sizes, finds);
      }
      return 0.0;
    });
  }

  /// Tries the cuts of \p batch of all \p sizes, the largest micro-batches first, as far as \ref
  /// CutProgress says, until no cut that is left can be faster than the choice.
  void try_cuts(BatchShape batch, std::span<std::vector<BatchCut> const> sizes) {
    auto const steps = cut_steps(sizes);
    std::vector<double> best_s{CutTrial::never};  // by the number of steps behind: of the choice
    std::map<std::int64_t, ShapeCache<Model>> shapes;
    std::vector<CutTrial> trials(steps.size());
    struct End {  // before the trials, which end early then
      std::atomic<std::size_t>& first_step;
      ~End() { first_step = std::numeric_limits<std::size_t>::max(); }
    } const at_end{first_step_};
    auto const begin = [&](std::size_t first, std::size_t count) {
      auto const end = std::min(first + count, steps[first].end_of_size);
      for (auto j = first; j < end && steps[j].knows < best_s.size(); ++j) {
        auto const rows = steps[j].cut.rows;
        auto const found = shapes.try_emplace(rows, model_, BatchShape{rows, batch.length}).first;
        if (!trials[j].has_begun()) {
          trials[j].to_beat_s = best_s[steps[j].knows];
          begin_trial(batch, j, steps[j].cut, found->second.capacity(), trials[j]);
        }
      }
    };
    for (std::size_t i = 0; i < steps.size();) {
      auto const& [cut, end, knows] = steps[i];
      begin(i, async_.runs_aside() ? progress_.sure_cuts() : 1);
      if (async_.runs_aside() && end < steps.size()) {
        begin(end, progress_.sure_cuts_behind(cut.rows));
      }
      auto& trial = trials[i];
      refusals_.keep(trial.unfit);
      if (trial.is_possible()) {
        // As if all ranks were as fast as the fastest: dealt rounds may go there.
        if (std::ranges::min(trial.least_s) >= progress_.chosen().seconds) {
          return;
        }
        take(cut, trial);
      }
      i = progress_.leaves_size() ? end : i + 1;
      best_s.resize(i + 1, progress_.chosen().seconds);
      if (i == end) {
        progress_.end_size();
        first_step_ = end;
      }
    }
  }

  /// \p smallest are the cuts into the smallest micro-batches. \throws Error as \ref automatic says
  /// when nothing fits.
  [[nodiscard]] AutomaticChoice finish(BatchShape batch, std::span<BatchCut const> smallest) && {
    choice_.chosen = progress_.chosen();
    choice_.tried = progress_.tried();
    if (choice_.tried.empty()) {
      refuse(batch, smallest);
    }
    choice_.options = with_cut(std::move(choice_.options), choice_.chosen.cut);
    auto const& options = choice_.options;
    choice_.options.capacity = {choice_.chosen.cut.rows, batch.length};
    if (options.costs == CostSource::measured && !options.cost_file.empty()) {  // interpolated ones
      keep_costs(
          options.cost_file, choice_.plan->model, device_, options_.devices, choice_.plan->costs);
    }
    return std::move(choice_);
  }

 private:
  /// Lets ranks agree on their parts of \p cut, step \p number, and plans it, perhaps on a thread.
  void begin_trial(BatchShape batch,
                   std::size_t number,
                   BatchCut const& cut,
                   ShapedModel const& shaped,
                   CutTrial& trial) {
    trial.unfit = refusal_of(options_, cut);
    trial.costs = costs_.find(cut.rows);
    trial.least_s = of_all_ranks(group_, [&] {
      return trial.unfit || !trial.costs
                 ? CutTrial::never
                 : trial.costs->micro_batch_s() * static_cast<double>(batch.rows / cut.rows) /
                       static_cast<double>(options_.devices);
    });
    if (!trial.is_possible()) {
      return;
    }
    auto of_cut = with_cut(options_, cut);
    of_cut.capacity = shaped.model.capacity;
    of_cut.seconds_to_beat = trial.to_beat_s;
    try {
      auto const host_bytes = host_bytes_of(devices_, planner_, shaped, *trial.costs, optimizer_);
      agree_on_division(group_, of_cut, *trial.costs, host_bytes, choice_.options.host_memory > 0);
    } catch (Error const& error) {
      trial.refusal = error;
      return;
    }
    trial.result = async_([this, number, of_cut, &shaped, &costs = *trial.costs] {
      return plan_cut(number, of_cut, shaped, costs);
    });
  }

  /// Plans the cut of step \p number. \throws as planning; Error (aborted) when it is needed no
  /// more.
  [[nodiscard]] PipelinePlan plan_cut(std::size_t number,
                                      PipelineOptions options,
                                      ShapedModel const& shaped,
                                      CostModel const& costs) {
    auto const is_needed = [&] {
      require(number >= first_step_, Errc::aborted, "another cut has ended the search");
    };
    is_needed();
    options.forecast = [&](auto const&... of_plan) {
      is_needed();
      return options_.forecast(of_plan...);
    };
    return assemble_plan(devices_, planner_, shaped, costs, options, optimizer_, true, &async_);
  }

  /// Takes what \p trial has planned of \p cut, if it fits, and lets it be the choice, if it is.
  void take(BatchCut const& cut, CutTrial& trial) {
    try {
      if (trial.refusal) {
        throw Error(*trial.refusal);
      }
      std::optional<PipelinePlan> made;
      auto const seconds = std::ranges::max(of_all_ranks(group_, [&] {
        made = trial.result.get();
        return made->seconds;
      }));
      if (progress_.add({cut, seconds, made->stages.partition.size()})) {
        choice_.options.known_costs = *trial.costs;
        choice_.options.seconds_to_beat = trial.to_beat_s;
        choice_.plan = std::move(made);
      }
    } catch (Error const& error) {
      refusals_.note(error);
    }
  }

  /// Whether layers could be measured with one of \p cuts of \p batch, which are of one size, or
  /// what they take is known otherwise.
  bool finds_costs(BatchShape batch, std::span<BatchCut const> cuts) {
    auto const rows = cuts.front().rows;
    if (costs_.has(rows)) {
      return true;
    }
    options_.capacity = {rows, batch.length};
    ShapeCache const shapes(model_, options_.capacity);
    return std::ranges::any_of(cuts, [&](BatchCut const& cut) {
      if (refusal_of(options_, cut)) {
        return false;  // as try_cuts says
      }
      try {
        auto costs = layer_costs(model_,
                                 devices_,
                                 planner_,
                                 shapes.capacity(),
                                 with_cut(options_, cut),
                                 optimizer_,
                                 !costs_.empty());
        costs.set_network(options_.network.value_or(NetworkCost{}));
        costs_.add(rows, std::move(costs));
        return true;
      } catch (Error const& error) {
        refusals_.note(error);
        return false;
      }
    });
  }

  /// \throws Error why nothing fits. Devices may lack least with the fewest rounds or the most:
  ///         gradients are sums of rounds, but a round has fewer checkpoints, whose pages they map.
  [[noreturn]] void refuse(BatchShape batch, std::span<BatchCut const> smallest) {
    options_.capacity = {smallest.front().rows, batch.length};
    ShapeCache const shapes(model_, options_.capacity);
    for (auto const* cut : {&smallest.front(), &smallest.back()}) {
      if (group_.size() == 1 && !refusal_of(options_, *cut)) {
        refusals_.note_least([&] {
          auto options = quick_options(with_cut(options_, *cut));
          options.names_least_budget = true;
          auto const costs = CostModel::estimate(shapes.capacity().model, device_);
          (void)assemble_plan(
              devices_, planner_, shapes.capacity(), costs, options, optimizer_, !costs_.empty());
        });
      }
    }
    refusals_.raise();
  }

  Model const& model_;
  OptimizerNeeds optimizer_;
  D& devices_;
  AnyPlanner planner_;
  AnyProcessGroup group_;
  PipelineOptions options_;
  DeviceProperties device_;
  BoundedAsync async_;
  std::atomic<std::size_t> first_step_ = 0;  // those before are over, or needed no more
  AutomaticChoice choice_;
  CostsByRows costs_;
  CutProgress progress_;
  CutRefusals refusals_;
};

}  // namespace detail

}  // namespace roundpipe
