// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Chooses how a batch is cut into micro-batches and rounds, by forecast.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/policies.hpp>
#include <roundpipe/simulate/forecast.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// How a batch is cut: into rounds of equal micro-batches. A 0 leaves the choice open.
struct BatchCut {
  std::int64_t rows = 0;                    ///< Of a micro-batch.
  std::size_t micro_batches_per_round = 0;  ///< M_R
  std::size_t rounds = 0;                   ///< R
};

/// A cut that was planned.
struct PlannedCut {
  BatchCut cut;
  double seconds = 0;      ///< Of an iteration, by forecast.
  std::size_t stages = 0;  ///< Forward and backward; 1: all is one stage, nothing runs twice.
};

/// What \ref automatic chose.
struct AutomaticChoice {
  PipelineOptions options;           ///< As given, with the cut and its costs filled in.
  PlannedCut chosen;                 ///< Of \ref tried: as \ref automatic says.
  std::optional<PipelinePlan> plan;  ///< What a pipeline plans with \ref options; always there.
  std::vector<PlannedCut> tried;     ///< In the order of trial.
};

/// One line: the cut, its forecast, and what came next.
[[nodiscard]] std::string to_string(AutomaticChoice const& choice);

namespace detail {

/// Above this many positions a micro-batch's products become no faster: on an H200 a layer of the
/// 1.7B shape takes 0.576 us a position with 16,384 of them, and 0.589 with 8,192.
inline constexpr std::int64_t enough_positions = 32768;

/// By this share a cut must be faster than one of its size with fewer rounds. On an H200 each round
/// costs the host some 10 ms of dispatch, which forecasts do not know: with rounds of one
/// micro-batch, 3.1 % of the device's time.
inline constexpr double least_gain_of_rounds = 0.005;

/// After so many cuts, or sizes, in a row that are no better, the search gives up. One is too few:
/// cuts divide the batch, so from one to the next much changes at once. For 48 sequences of 8,192
/// tokens of 8B, 24 GiB, three rows are 6 % worse than four, and one row is 6 % better.
inline constexpr int patience = 2;

/// The ways to cut \p batch that \p wanted leaves open, by size: micro-batches with more rows
/// first, up to \ref enough_positions, and of one size those with fewer rounds first.
/// \throws Error (invalid_argument) when there is none.
[[nodiscard]] std::vector<std::vector<BatchCut>> batch_cuts(BatchShape batch,
                                                            BatchCut const& wanted);

/// The least seconds that any plan takes for \p rows rows in micro-batches of \p cut: each layer
/// runs forward and backward once, and no device ever waits.
[[nodiscard]] double least_seconds(CostModel const& costs,
                                   std::int64_t rows,
                                   BatchCut const& cut,
                                   std::size_t devices);

/// The search of \ref automatic.
template <class Model, DeviceList D>
class CutSearch {
 public:
  /// The references must outlive this.
  CutSearch(Model const& model,
            OptimizerNeeds optimizer,
            D& devices,
            AnyPlanner const& planner,
            PipelineOptions const& options,
            std::size_t threads)
      : model_(model),
        optimizer_(std::move(optimizer)),
        devices_(devices),
        planner_(planner),
        options_(complete_options(options, devices)),
        device_(devices.device_properties(DeviceId(0))),
        threads_(std::max<std::size_t>(threads, 1)) {
    choice_.options = options;
    choice_.chosen.seconds = std::numeric_limits<double>::infinity();
    options_.known_costs.reset();  // each size has its own
    if (!options_.forecast) {
      options_.forecast = forecast_training_seconds;
    }
  }

  /// Tries \p cuts of \p batch, which are of one size, until \ref patience of them are worse.
  /// \returns whether smaller micro-batches may be better.
  [[nodiscard]] bool try_size(BatchShape batch, std::span<BatchCut const> cuts) {
    options_.capacity = {cuts.front().rows, batch.length};
    ShapeCache const shapes(model_, options_.capacity);
    std::optional<CostModel> costs;
    std::optional<double> best_s;
    int worse = 0;
    std::atomic<bool> is_over = false;
    std::vector<std::future<Trial>> trials(cuts.size());  // of the cuts that have begun
    std::size_t begun = 0;
    struct End {  // before the trials, which end early then
      std::atomic<bool>& is_over;
      ~End() { is_over = true; }
    } const end{is_over};
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      auto const& cut = cuts[i];
      if (auto refusal = refusal_of(cut)) {
        refusal_ = std::move(refusal);
        continue;
      }
      try {
        if (!costs) {
          options_.micro_batches_per_round = cut.micro_batches_per_round;
          options_.rounds = cut.rounds;
          costs = costs_of(shapes.capacity());
        }
        if (least_seconds(*costs, batch.rows, cut, options_.devices) >= choice_.chosen.seconds) {
          return false;
        }
        for (begun = std::max(begun, i); begun < std::min(i + threads_, cuts.size()); ++begun) {
          trials[begun] = std::async(
              threads_ > 1 ? std::launch::async : std::launch::deferred,
              [&, at = begun] { return try_cut(cuts[at], shapes.capacity(), *costs, is_over); });
        }
        auto [made, seconds] = trials[i].get();
        choice_.tried.push_back({cut, seconds, made.stages.partition.size()});
        auto const has_fewer_rounds = choice_.chosen.cut.rows == cut.rows;
        if (seconds < choice_.chosen.seconds * (has_fewer_rounds ? 1 - least_gain_of_rounds : 1)) {
          choice_.chosen = choice_.tried.back();
          choice_.options.known_costs = costs;
          choice_.plan = std::move(made);
        }
        worse = seconds > best_s.value_or(seconds) ? worse + 1 : 0;
        best_s = std::min(seconds, best_s.value_or(seconds));
        if (worse == patience) {
          break;
        }
      } catch (Error const& error) {
        if (error.code() != Errc::over_budget) {
          throw;
        }
        refusal_ = error;
      }
    }
    if (best_s) {
      worse_sizes_ = choice_.chosen.cut.rows == cuts.front().rows ? 0 : worse_sizes_ + 1;
    }
    return worse_sizes_ < patience;
  }

  /// \throws Error (over_budget) when nothing fits.
  [[nodiscard]] AutomaticChoice finish(BatchShape batch) && {
    if (choice_.tried.empty()) {
      throw refusal_.value();
    }
    auto const& cut = choice_.chosen.cut;
    choice_.options.capacity = {cut.rows, batch.length};
    choice_.options.micro_batches_per_round = cut.micro_batches_per_round;
    choice_.options.rounds = cut.rounds;
    return std::move(choice_);
  }

 private:
  /// A plan, and its seconds by forecast.
  using Trial = std::pair<PipelinePlan, double>;

  /// Why options do not go with \p cut, if they do not.
  [[nodiscard]] std::optional<Error> refusal_of(BatchCut const& cut) const {
    auto const refused = [](char const* text) { return Error(Errc::invalid_argument, text); };
    if (options_.offloaded_micro_batches.value_or(0) > cut.micro_batches_per_round) {
      return refused(
          "no cut of the batch has rounds of as many micro-batches as are to be offloaded");
    }
    auto const& levels = options_.save_levels;
    if (levels && std::any_of(levels->begin(), levels->end(), [&](auto const& of_layer) {
          return !of_layer.empty() && of_layer.size() != cut.micro_batches_per_round;
        })) {
      return refused("no cut of the batch has rounds of as many micro-batches as have save levels");
    }
    if (auto const& of_rounds = options_.levels_of_rounds;
        !of_rounds.empty() && of_rounds.rbegin()->first >= cut.rounds) {
      return refused("no cut of the batch has as many rounds as have save levels of their own");
    }
    return std::nullopt;
  }

  /// Plans \p cut. \throws Error (aborted) when \p is_over meanwhile; and as planning does.
  [[nodiscard]] Trial try_cut(BatchCut const& cut,
                              ShapedModel const& shaped,
                              CostModel const& costs,
                              std::atomic<bool> const& is_over) const {
    auto options = options_;
    options.micro_batches_per_round = cut.micro_batches_per_round;
    options.rounds = cut.rounds;
    options.forecast = [&](auto const&... of_plan) {
      require(!is_over, Errc::aborted, "another cut has ended the search");
      return options_.forecast(of_plan...);
    };
    auto made = assemble_plan(devices_, planner_, shaped, costs, options, optimizer_);
    auto const seconds = options.forecast(made.graph, made.step, costs, device_);
    return {std::move(made), seconds};
  }

  [[nodiscard]] CostModel costs_of(ShapedModel const& shaped) {
    return layer_costs(model_, devices_, planner_, shaped, options_, optimizer_);
  }

  Model const& model_;
  OptimizerNeeds optimizer_;
  D& devices_;
  AnyPlanner const& planner_;
  PipelineOptions options_;
  DeviceProperties device_;
  std::size_t threads_;
  AutomaticChoice choice_;
  int worse_sizes_ = 0;           // since that of the choice
  std::optional<Error> refusal_;  // of the last cut that cannot be
};

}  // namespace detail

/// Chooses micro-batches and rounds for batches of the extents \p batch: those whose plan has the
/// least seconds by `options.forecast`, or by \ref forecast_training_seconds where it is not set.
/// Among micro-batches of one size, more rounds must be faster by 0.5 % (\ref
/// detail::least_gain_of_rounds).
/// \p options describe the pipeline, but for capacity and cut; \p wanted pins what is not 0.
/// \p devices are a backend, or figures of devices that are not
/// there: then costs are estimated, and \p model need only describe itself.
///
/// The search goes from large micro-batches to small ones, and for each size from one round to
/// many. It leaves a size when more rounds have twice been worse than fewer, and ends when two
/// sizes are no better than a larger one, or even a pipeline that never waits were none.
///
/// Where \p options ask for measured costs, the layers run on device 0 at each size. No memory
/// stays taken.
///
/// So many \p threads plan cuts of one size at once. They ask \p devices, \p policies and
/// `options.forecast` at the same time. The choice and what was tried do not depend on them.
/// \throws Error (over_budget) when no cut fits the budgets: what the last one lacks;
///         (invalid_argument) when nothing divides \p batch as \p wanted asks, or so that a round
///         has `options.offloaded_micro_batches`, or as many as `options.save_levels`.
template <class M, class O, class D>
[[nodiscard]] AutomaticChoice automatic(M const& model,
                                        O const& optimizer,
                                        D& devices,
                                        PipelineOptions const& options,
                                        BatchShape batch,
                                        BatchCut const& wanted = {},
                                        Policies const& policies = {},
                                        std::size_t threads = 1) {
  static_assert(detail::check_optimizer<O>());
  if constexpr (Backend<D>) {
    static_assert(detail::check_backend<D>() && detail::check_model<M, typename D::Stream>());
  } else {
    static_assert(detail::check_devices<D>() && detail::check_model<M>());
  }
  auto const planner = policies.planner();
  detail::CutSearch search(model, needs_of(optimizer), devices, planner, options, threads);
  for (auto const& cuts : detail::batch_cuts(batch, wanted)) {
    if (!search.try_size(batch, cuts)) {
      break;
    }
  }
  return std::move(search).finish(batch);
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/automatic.ipp>
#endif
