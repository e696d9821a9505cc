// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/agree.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/cut_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::vector<std::vector<BatchCut>> batch_cuts(BatchShape batch,
                                                               BatchCut const& wanted) {
  auto const most =
      std::clamp(enough_positions / batch.length, std::int64_t{1}, std::int64_t{batch.rows});
  std::vector<std::vector<BatchCut>> cuts;
  for (auto rows = wanted.rows > 0 ? wanted.rows : most; rows > 0; --rows) {
    if (batch.rows % rows != 0 || (wanted.rows > 0 && wanted.rows != rows)) {
      continue;
    }
    auto const micro_batches = static_cast<std::size_t>(batch.rows / rows);
    std::vector<BatchCut> of_size;
    for (std::size_t rounds = 1; rounds <= micro_batches; ++rounds) {
      auto const in_round = micro_batches / rounds;
      if (micro_batches % rounds == 0 && (wanted.rounds == 0 || wanted.rounds == rounds) &&
          (wanted.micro_batches_per_round == 0 || wanted.micro_batches_per_round == in_round)) {
        of_size.push_back({rows, in_round, rounds});
      }
    }
    if (!of_size.empty()) {
      cuts.push_back(std::move(of_size));
    }
  }
  if (cuts.empty()) {
    throw Error(Errc::invalid_argument,
                "a batch of " + std::to_string(batch.rows) + " rows has no such cut into " +
                    "equal micro-batches and rounds");
  }
  return cuts;
}

ROUNDPIPE_INLINE BatchShape batch_of_rank(BatchShape batch, std::size_t ranks) {
  auto const parts = static_cast<std::int64_t>(ranks);
  if (batch.rows % parts != 0) {
    throw Error(Errc::invalid_argument,
                "a batch of " + std::to_string(batch.rows) + " rows has no equal parts for " +
                    std::to_string(ranks) + " ranks");
  }
  return {batch.rows / parts, batch.length};
}

ROUNDPIPE_INLINE void require_same_choice(AnyProcessGroup group,
                                          BatchShape batch,
                                          BatchCut const& wanted,
                                          std::size_t threads) {
  auto const texts = agree(group, GroupChannel::control, [&] {
    auto const number = [](auto value) { return std::to_string(value); };
    return "batches of " + number(batch.rows) + " rows of " + number(batch.length) + " (of " +
           number(wanted.rows) + " in a micro-batch, " + number(wanted.micro_batches_per_round) +
           " micro-batches in a round, " + number(wanted.rounds) + " rounds) on " +
           number(threads) + " threads";
  });
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (texts[r] != texts[0]) {
      throw Error(Errc::invalid_argument,
                  "rank " + std::to_string(r) + " chooses a cut for " + texts[r] +
                      ", and rank 0 for " + texts[0]);
    }
  }
}

}  // namespace detail

}  // namespace roundpipe
