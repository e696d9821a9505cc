// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Chooses how a batch is cut into micro-batches and rounds, by forecast.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/runtime/automatic_choice.hpp>
#include <roundpipe/runtime/cut_search.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/policies.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// Above this many positions a micro-batch's products become no faster: on an H200 a layer of the
/// 1.7B shape takes 0.576 us a position with 16,384 of them, and 0.589 with 8,192.
inline constexpr std::int64_t enough_positions = 32768;

/// The ways to cut \p batch that \p wanted leaves open, by size: micro-batches with more rows
/// first, up to \ref enough_positions, and of one size those with fewer rounds first.
/// \throws Error (invalid_argument) when there is none.
[[nodiscard]] std::vector<std::vector<BatchCut>> batch_cuts(BatchShape batch,
                                                            BatchCut const& wanted);

/// The rows of \p batch, which is that of all ranks, that each of \p ranks ranks has.
/// \throws Error (invalid_argument) when they are not equal.
[[nodiscard]] BatchShape batch_of_rank(BatchShape batch, std::size_t ranks);

/// An operation of all ranks. \throws Error (invalid_argument) on all where they do not ask for the
/// same choice.
void require_same_choice(AnyProcessGroup group,
                         BatchShape batch,
                         BatchCut const& wanted,
                         std::size_t threads);

}  // namespace detail

/// Chooses micro-batches and rounds for batches of the extents \p batch: those whose plan has the
/// least seconds by `options.forecast`, or by \ref forecast_training_seconds where it is not set.
/// Among micro-batches of one size, more rounds must be faster by 0.5 % (\ref
/// detail::least_gain_of_rounds).
/// \p options describe the pipeline, but for capacity and cut; \p wanted pins what is not 0.
/// \p devices are a backend, or figures of devices that are not there: then costs are estimated,
/// and \p model need only describe itself.
///
/// The search goes from large micro-batches to small ones, and for each size from one round to
/// many. It leaves a size when more rounds have twice been worse than fewer, or no better by that
/// share where they are slower than the choice. Behind two sizes that are no better than a larger
/// one, it tries the first cut that fits of each size, and more where that is the choice: a whole
/// model may fit in one stage only with the smallest micro-batches. It ends where even a pipeline
/// that never waits would be no better. Each plan is sought in the knowledge of the best one of the
/// cuts before, up to the first of the next larger size (\ref PipelineOptions::seconds_to_beat), so
/// a cut that is behind it may have a bound in place of seconds, and a faster plan than the one
/// that was tried.
///
/// Where \p options ask for measured costs, the layers run on all devices before plans are made, at
/// the largest and the smallest size of micro-batches that has a plan, and at one in the middle
/// where several are between. Costs of the others are interpolated (\ref CostsByRows). No memory
/// stays taken.
///
/// With a group of several ranks in \p policies it is an operation of all of them. \p batch is that
/// of all; rounds are those of a rank. Each rank plans with its own devices, budgets, costs and
/// share of the states. A cut takes as long as on the slowest rank, and must fit all; ranks choose
/// the same. Exchanges take what `options.network` says, or what ranks measure. Without a group the
/// choice is for rank `options.rank` of `options.ranks` ranks that are alike.
///
/// So many \p threads plan cuts at once, those that the search surely comes to; free ones make
/// forecasts of a cut ahead. They ask \p devices, \p policies and `options.forecast` at the same
/// time. The choice and what was tried do not depend on them.
/// \throws OverBudget when no cut fits the budgets. It names the least of the host that a cut takes
///         which fits devices, or else the least of a device with which this finds a cut, if that
///         is not too much of the host. With several ranks: Error (over_budget), what the last cut
///         lacks; Error (invalid_argument) when nothing divides \p batch as \p wanted asks, or so
///         that a round has `options.offloaded_micro_batches`, or as many as `options.save_levels`;
///         with several ranks, as \ref agree does.
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
  detail::require_same_choice(policies.group, batch, wanted, threads);
  detail::CutSearch search(model, needs_of(optimizer), devices, policies, options, threads);
  auto const of_rank = detail::batch_of_rank(batch, search.ranks());
  auto const sizes = detail::batch_cuts(of_rank, wanted);
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  auto const begin = Clock::now();
  search.find_costs(of_rank, sizes);
  auto const costs_known = Clock::now();
  search.try_cuts(of_rank, sizes);
  auto choice = std::move(search).finish(of_rank, sizes.back());
  choice.measured_s = Seconds(costs_known - begin).count();
  choice.planned_s = Seconds(Clock::now() - costs_known).count();
  return choice;
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/automatic.ipp>
#endif
