// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a run of a graph is about: the micro-batches' data and the call's numbers.

#include <roundpipe/core/span.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/dealt_rounds.hpp>
#include <roundpipe/model/shape_cache.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundpipe {

/// The data of one call (or step), kept until its run is complete.
struct CallData {
  std::span<StageLayout const> stages;
  std::size_t micro_batches_per_round = 1;
  std::size_t rank = 0;
  DealtRounds deal{};                      ///< The rounds of the ranks that share the batch.
  std::vector<ShapedModel const*> shapes;  ///< By micro-batch of the call.
  std::vector<HostBytes> batch;            ///< Its tensors, as \c ShapedModel::batch lays them out.
  std::vector<HostBytes> losses;           ///< One double each.
  std::vector<HostBytes> results;          ///< In evaluations.
  double gradient_scale = 1;               ///< The loss scale included.
  std::uint64_t seed = 0;
  std::uint32_t number = 0;     ///< Counts training calls, for random numbers.
  std::uint64_t iteration = 1;  ///< The number of the step that this is, or that follows.
  std::uint64_t version = 0;    ///< Uploads read the weights of this step; 0: the first.
  double loss_scale = 1;        ///< Part of \c gradient_scale; of steps: the calls'.
  bool evaluating = false;
  bool begins_gradients = false;  ///< The first call of an iteration.

  /// The number of micro-batch \p m of \p of_rank among those of all ranks.
  [[nodiscard]] std::size_t number_of(std::size_t m, std::size_t of_rank) const noexcept {
    auto const round = deal.number(of_rank, m / micro_batches_per_round);
    return round * micro_batches_per_round + m % micro_batches_per_round;
  }
  /// The same of this rank's.
  [[nodiscard]] std::size_t number_of(std::size_t m) const noexcept { return number_of(m, rank); }
};

}  // namespace roundpipe
