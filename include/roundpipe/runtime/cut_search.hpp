// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The search for the cut of a batch into micro-batches and rounds that is fastest by
/// forecast.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/config.hpp>
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

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// By this share a cut must be faster than one of its size with fewer rounds. On an H200 each round
/// costs the host some 10 ms of dispatch, which forecasts do not know: with rounds of one
/// micro-batch, 3.1 % of the device's time.
inline constexpr double least_gain_of_rounds = 0.005;

/// After so many cuts, or sizes, in a row that are no better, the search gives up. One is too few:
/// cuts divide the batch, so from one to the next much changes at once. For 48 sequences of 8,192
/// tokens of 8B, 24 GiB, three rows are 6 % worse than four, and one row is 6 % better.
inline constexpr int patience = 2;

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
        threads_(std::max<std::size_t>(threads, 1)) {
    options_.network = network_of(group_, devices_, options_);
    choice_.options = options;
    choice_.options.network = options_.network;
    choice_.chosen.seconds = std::numeric_limits<double>::infinity();
    options_.known_costs.reset();                     // each size has its own
    options_.names_least_budget = group_.size() > 1;  // refuse() does otherwise
    if (!options_.forecast) {
      options_.forecast = forecast_training_seconds;
    }
  }

  [[nodiscard]] std::size_t ranks() const noexcept { return options_.ranks; }

  /// Finds what layers take at \p sizes of micro-batches of \p batch, the largest first, for \ref
  /// try_size. It measures only at the largest and the smallest size that can be, one right after
  /// the other: devices that rest meanwhile cool down, and clock higher for a while.
  void find_costs(BatchShape batch, std::span<std::vector<BatchCut> const> sizes) {
    using Clock = std::chrono::steady_clock;
    auto const begin = Clock::now();
    (void)of_all_ranks(group_, [&] {
      auto const finds = [&](auto const& cuts) { return finds_costs(batch, cuts); };
      if (options_.costs == CostSource::measured) {
        (void)std::ranges::any_of(sizes, finds);
        (void)std::any_of(sizes.rbegin(), sizes.rend(), finds);
      } else {
        std::ranges::for_each(sizes, finds);
      }
      return 0.0;
    });
    choice_.measured_s = std::chrono::duration<double>(Clock::now() - begin).count();
  }

  /// Tries \p cuts of \p batch, which are of one size, until \ref patience of them are worse.
  /// \returns whether smaller micro-batches may be better.
  [[nodiscard]] bool try_size(BatchShape batch, std::span<BatchCut const> cuts) {
    options_.capacity = {cuts.front().rows, batch.length};
    options_.seconds_to_beat = choice_.chosen.seconds;  // one for all threads
    ShapeCache const shapes(model_, options_.capacity);
    auto const costs = costs_.find(cuts.front().rows);
    std::optional<double> best_s;
    int worse = 0;
    std::atomic<bool> is_over = false;
    std::vector<BegunTrial> trials(cuts.size());
    struct End {  // before the trials, which end early then
      std::atomic<bool>& is_over;
      ~End() { is_over = true; }
    } const end{is_over};
    for (std::size_t i = 0, begun = 0; i < cuts.size(); ++i) {
      auto const& cut = cuts[i];
      try {
        auto const least_s = of_all_ranks(group_, [&] {  // as if no device ever waited
          auto const refusal = refusal_of(options_, cut);
          refusals_.keep(refusal);
          return refusal || !costs
                     ? never
                     : costs->micro_batch_s() * static_cast<double>(batch.rows / cut.rows) /
                           static_cast<double>(options_.devices);
        });
        if (std::ranges::max(least_s) == never) {
          continue;
        }
        // As if all ranks were as fast as the fastest: dealt rounds may go there.
        if (std::ranges::min(least_s) >= choice_.chosen.seconds) {
          return false;
        }
        for (begun = std::max(begun, i); begun < std::min(i + threads_, cuts.size()); ++begun) {
          trials[begun] = begin_trial(cuts[begun], shapes.capacity(), *costs, is_over);
        }
        if (trials[i].refusal) {
          throw Error(*trials[i].refusal);
        }
        std::optional<PipelinePlan> made;
        auto const seconds = std::ranges::max(of_all_ranks(group_, [&] {
          auto [plan, own_s] = trials[i].result.get();
          made = std::move(plan);
          return own_s;
        }));
        choice_.tried.push_back({cut, seconds, made->stages.partition.size()});
        auto const has_fewer_rounds = choice_.chosen.cut.rows == cut.rows;
        if (seconds < choice_.chosen.seconds * (has_fewer_rounds ? 1 - least_gain_of_rounds : 1)) {
          choice_.chosen = choice_.tried.back();
          choice_.options.known_costs = *costs;
          choice_.options.seconds_to_beat = options_.seconds_to_beat;
          choice_.plan = std::move(made);
        }
        worse = seconds > best_s.value_or(seconds) ? worse + 1 : 0;
        best_s = std::min(seconds, best_s.value_or(seconds));
        if (worse == patience) {
          break;
        }
      } catch (Error const& error) {
        refusals_.note(error);
      }
    }
    if (best_s) {
      worse_sizes_ = choice_.chosen.cut.rows == cuts.front().rows ? 0 : worse_sizes_ + 1;
    }
    return worse_sizes_ < patience;
  }

  /// \p smallest are the cuts into the smallest micro-batches. \throws Error as \ref automatic says
  /// when nothing fits.
  [[nodiscard]] AutomaticChoice finish(BatchShape batch, std::span<BatchCut const> smallest) && {
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
  /// A plan, and its seconds by forecast.
  using Trial = std::pair<PipelinePlan, double>;
  struct BegunTrial {
    std::optional<Error> refusal;  ///< Of all ranks; else there is a result.
    std::future<Trial> result;
  };
  static constexpr double never = std::numeric_limits<double>::infinity();

  [[nodiscard]] static PipelineOptions with_cut(PipelineOptions options, BatchCut const& cut) {
    options.micro_batches_per_round = cut.micro_batches_per_round;
    options.rounds = cut.rounds;
    return options;
  }

  /// Lets ranks agree on their parts of \p cut, and plans it, perhaps on a thread.
  [[nodiscard]] BegunTrial begin_trial(BatchCut const& cut,
                                       ShapedModel const& shaped,
                                       CostModel const& costs,
                                       std::atomic<bool> const& is_over) const {
    auto options = with_cut(options_, cut);
    try {
      auto const host_bytes = host_bytes_of(devices_, planner_, shaped, costs, optimizer_);
      agree_on_division(group_, options, costs, host_bytes, choice_.options.host_memory > 0);
    } catch (Error const& error) {
      return {.refusal = error, .result = {}};
    }
    return {
        .refusal = {},
        .result = std::async(threads_ > 1 ? std::launch::async : std::launch::deferred,
                             [&, options] { return try_cut(options, shaped, costs, is_over); })};
  }

  /// Plans a cut. \throws Error (aborted) when \p is_over meanwhile; and as planning does.
  [[nodiscard]] Trial try_cut(PipelineOptions options,
                              ShapedModel const& shaped,
                              CostModel const& costs,
                              std::atomic<bool> const& is_over) const {
    options.forecast = [&](auto const&... of_plan) {
      require(!is_over, Errc::aborted, "another cut has ended the search");
      return options_.forecast(of_plan...);
    };
    auto made = assemble_plan(devices_, planner_, shaped, costs, options, optimizer_);
    auto const seconds = options.forecast(made.graph, made.step, costs, device_);
    return {std::move(made), seconds};
  }

  /// Whether layers could be measured with one of \p cuts of \p batch, which are of one size, or
  /// what they take is known otherwise.
  bool finds_costs(BatchShape batch, std::span<BatchCut const> cuts) {
    if (costs_.has(cuts.front().rows)) {
      return true;
    }
    options_.capacity = {cuts.front().rows, batch.length};
    ShapeCache const shapes(model_, options_.capacity);
    return std::ranges::any_of(
        cuts, [&](BatchCut const& cut) { return finds_costs(cut, shapes.capacity()); });
  }
  bool finds_costs(BatchCut const& cut, ShapedModel const& shaped) {
    if (refusal_of(options_, cut)) {
      return false;  // as try_size says
    }
    try {
      auto costs = layer_costs(
          model_, devices_, planner_, shaped, with_cut(options_, cut), optimizer_, !costs_.empty());
      costs.set_network(options_.network.value_or(NetworkCost{}));
      costs_.add(cut.rows, std::move(costs));
      return true;
    } catch (Error const& error) {
      refusals_.note(error);
      return false;
    }
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
  std::size_t threads_;
  AutomaticChoice choice_;
  CostsByRows costs_;
  int worse_sizes_ = 0;  // since that of the choice
  CutRefusals refusals_;
};

}  // namespace detail

}  // namespace roundpipe
