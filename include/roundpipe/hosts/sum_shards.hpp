// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The sum of a tensor over all ranks, in shards, each made by one rank in the ranks' order.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// Elements [begin, end) of an array.
struct ShardRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(ShardRange const&, ShardRange const&) = default;
};

/// The shard of \p rank when \p ranks ranks share \p size elements: consecutive ones, in the order
/// of ranks, and no rank has more than one element more than another.
[[nodiscard]] constexpr ShardRange shard_of(std::size_t size,
                                            std::size_t rank,
                                            std::size_t ranks) noexcept {
  auto const least = size / ranks;
  auto const longer = size % ranks;
  auto const begin = [&](std::size_t r) { return r * least + (r < longer ? r : longer); };
  return {begin(rank), begin(rank + 1)};
}

/// Adds up \p values of all ranks, an array of f32, bf16 or f16 of the same size and type on each.
/// Each rank gets the sums of its shard (\ref shard_of) in \p sums: in fp32, in the order of ranks,
/// not rounded. They replace what \p sums holds or, with \p adds, are added to it one by one.
/// \p received is scratch. A rank sends (H - 1) / H of the array and receives as much as it sends.
/// \throws Error (invalid_argument) for \p sums of another size, and as the group's operations do.
template <ProcessGroup G>
void sum_shards(G& group,
                GroupChannel channel,
                HostArray const& values,
                HostSpan<float> sums,
                bool adds,
                std::vector<std::byte>& received) {
  std::size_t const ranks = group.size();
  auto const own = shard_of(values.size, group.rank(), ranks);
  require(sums.size() == own.end - own.begin,
          Errc::invalid_argument,
          "the sums of a shard have another size than the shard");
  auto const bytes = sums.size() * size_of(values.dtype);
  received.resize(ranks * bytes);
  std::vector<ConstHostBytes> mine;
  std::vector<HostBytes> theirs;
  for (std::size_t r = 0; r < ranks; ++r) {
    auto const shard = shard_of(values.size, r, ranks);
    mine.push_back(values.part(shard.begin, shard.end).bytes());
    theirs.push_back(HostBytes(received).subspan(r * bytes, bytes));
  }
  group.exchange(channel, mine, theirs);
  for (std::size_t r = 0; r < ranks; ++r) {
    widen(theirs[r], values.dtype, sums, adds || r > 0);
  }
}

}  // namespace roundpipe
