// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which rounds of a batch which rank has.

#include <roundpipe/config.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace roundpipe {

/// The rounds of a call as ranks share them: they take rounds in turn, first each its first one,
/// then each its second one, as far as a rank has one. So what ranks add up in this order, one
/// process would add up in the order of the batch, however many rounds each rank has.
class DealtRounds {
 public:
  /// One process, which has all rounds.
  DealtRounds() : of_rank_(1, std::numeric_limits<std::size_t>::max()) {}
  /// \p rounds of each of \p ranks ranks.
  DealtRounds(std::size_t ranks, std::size_t rounds) : of_rank_(ranks, rounds) {}
  /// By rank: how many it has.
  explicit DealtRounds(std::vector<std::size_t> of_rank);

  [[nodiscard]] std::size_t ranks() const noexcept { return of_rank_.size(); }
  /// How many \p rank has.
  [[nodiscard]] std::size_t of(std::size_t rank) const noexcept { return of_rank_[rank]; }
  /// How many the rank has that has most.
  [[nodiscard]] std::size_t most() const noexcept;
  /// Whether \p rank has a round number \p round of its own.
  [[nodiscard]] bool has(std::size_t rank, std::size_t round) const noexcept {
    return round < of_rank_[rank];
  }
  /// How many ranks have a round number \p round of their own.
  [[nodiscard]] std::size_t ranks_with(std::size_t round) const noexcept;
  /// The number among those of all ranks of \p rank's round number \p round.
  [[nodiscard]] std::size_t number(std::size_t rank, std::size_t round) const noexcept;

 private:
  std::vector<std::size_t> of_rank_;
};

/// Deals \p rounds rounds by the \p speeds of ranks, so that the last rank is done as early as may
/// be: one to each, and each further one to the rank that is done with it first, the first of
/// those. As many rounds as ranks at least.
[[nodiscard]] DealtRounds deal_rounds(std::size_t rounds, std::span<double const> speeds);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/dealt_rounds.ipp>
#endif
