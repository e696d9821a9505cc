// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/rank_division.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

namespace detail {

/// The refusal of \p room's budget on \p rank, which takes \p least bytes \p for_what.
[[nodiscard]] ROUNDPIPE_INLINE Error host_refusal(std::size_t rank,
                                                  HostRoom const& room,
                                                  Bytes least,
                                                  std::string const& for_what) {
  return {Errc::over_budget,
          "rank " + std::to_string(rank) + ": the host budget of " + format_bytes(room.budget) +
              " is too small: the rank takes at least " + format_bytes(least) + " (" +
              std::to_string(least) + " bytes) " + for_what};
}

/// \throws Error (invalid_argument) unless the shares and speeds of ranks are one for each, finite
///         and positive.
ROUNDPIPE_INLINE void require_rank_numbers(PipelineOptions const& options) {
  for (auto const* numbers : {&options.rank_shares, &options.rank_speeds}) {
    auto const is_wrong = [](double number) { return !std::isfinite(number) || number <= 0; };
    require(numbers->empty() ||
                (numbers->size() == options.ranks && std::ranges::none_of(*numbers, is_wrong)),
            Errc::invalid_argument,
            "rank_shares and rank_speeds have a finite, positive number for each rank");
  }
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<double> shares_of(std::span<HostRoom const> rooms) {
  require_host_room(rooms, "even where other ranks keep all optimizer states");
  auto const shared = [](HostRoom const& room) {
    return static_cast<double>(std::max<Bytes>(room.most - room.least, 1));
  };
  std::vector<double> parts;  // for which there is room
  for (auto const& room : rooms) {
    parts.push_back(static_cast<double>(room.budget - room.least) / shared(room));
  }
  auto const tightest = std::ranges::min_element(parts);
  if (std::ranges::none_of(rooms, &HostRoom::is_named) &&
      *tightest * static_cast<double>(parts.size()) >= 1) {
    return std::vector<double>(parts.size(), 1.0);
  }
  if (auto const sum = std::accumulate(parts.begin(), parts.end(), 0.0); sum < 1) {
    auto const rank = static_cast<std::size_t>(tightest - parts.begin());
    constexpr double of_cuts = 0.01;  // for they fall between tensors, or at a grain
    auto const lacks = static_cast<Bytes>(std::ceil(shared(rooms[rank]) * (1 + of_cuts - sum)));
    throw detail::host_refusal(rank,
                               rooms[rank],
                               rooms[rank].budget + lacks,
                               "with the budgets of the others: together they have room for " +
                                   std::to_string(static_cast<int>(100 * sum)) +
                                   " % of the optimizer states");
  }
  return parts;
}

ROUNDPIPE_INLINE void require_host_room(std::span<HostRoom const> rooms,
                                        char const* what_it_keeps) {
  for (std::size_t r = 0; r < rooms.size(); ++r) {
    if (rooms[r].budget < rooms[r].least) {
      throw detail::host_refusal(r, rooms[r], rooms[r].least, what_it_keeps);
    }
  }
}

ROUNDPIPE_INLINE void agree_on_division(
    AnyProcessGroup group,
    PipelineOptions& options,
    CostModel const& costs,
    std::function<Bytes(PipelineOptions const&)> const& plan_bytes,
    bool names_budget) {
  detail::require_rank_numbers(options);
  if (group.size() == 1) {
    return;
  }
  auto const speeds = of_all_ranks(
      group, [&] { return static_cast<double>(options.devices) / costs.micro_batch_s(); });
  if (options.measures_rank_speeds) {
    options.rank_speeds = speeds;
    detail::require_rank_numbers(options);
  }
  bool const divides = options.shard_states && options.rank_shares.empty();
  auto const rooms = of_all_ranks(group, [&] {
    HostRoom room{.budget = options.host_memory, .is_named = names_budget};
    if (divides) {
      auto bounds = quick_options(options);
      bounds.rank_shares.assign(options.ranks, 1);
      bounds.rank_shares[options.rank] = 0;
      room.least = plan_bytes(bounds);
      bounds.rank_shares.assign(options.ranks, 0);
      bounds.rank_shares[options.rank] = 1;
      room.most = plan_bytes(bounds);
    }
    return room;
  });
  if (divides) {
    options.rank_shares = shares_of(rooms);
  }
}

}  // namespace roundpipe
