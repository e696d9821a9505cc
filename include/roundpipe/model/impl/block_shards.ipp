// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/block_shards.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

namespace roundpipe {

namespace detail {

/// The byte of \p cut in a block that \p table describes.
[[nodiscard]] ROUNDPIPE_INLINE Bytes byte_of(BlockCut cut, TensorTable const& table) noexcept {
  return cut.tensor == table.size()
             ? table.bytes()
             : table.offset(cut.tensor) + cut.element * size_of(table[cut.tensor].dtype);
}

}  // namespace detail

ROUNDPIPE_INLINE ElementRange BlockShard::of_tensor(std::size_t t,
                                                    std::size_t size) const noexcept {
  auto const place = [&](BlockCut cut) {
    return t < cut.tensor ? size : t == cut.tensor ? cut.element : 0;
  };
  return {place(begin), place(end)};
}

ROUNDPIPE_INLINE ByteRange BlockShard::bytes(TensorTable const& table) const noexcept {
  return {detail::byte_of(begin, table), detail::byte_of(end, table)};
}

ROUNDPIPE_INLINE Bytes BlockShard::offset(std::size_t t, TensorTable const& table) const noexcept {
  auto const first = of_tensor(t, table[t].shape.size()).begin;
  auto const byte = table.offset(t) + first * size_of(table[t].dtype);
  auto const own = bytes(table);
  return std::clamp(byte, own.begin, own.end) - own.begin;  // none: anywhere in the shard
}

ROUNDPIPE_INLINE std::vector<BlockShard> cut_block(
    TensorTable const& table,
    std::span<double const> shares,
    std::function<bool(std::size_t)> const& is_whole) {
  double elements = 0;
  for (auto const& spec : table) {
    elements += static_cast<double>(spec.shape.size());
  }
  auto const all = std::accumulate(shares.begin(), shares.end(), 0.0);
  // The cut nearest to the element that would be just.
  auto const nearest = [&](std::size_t element) -> BlockCut {
    for (std::size_t t = 0; t < table.size(); ++t) {
      auto const size = table[t].shape.size();
      if (element < size) {
        auto const grain = is_whole && is_whole(t) ? size : shard_grain;
        auto const below = element / grain * grain;
        auto const above = std::min(below + grain, size);
        auto const cut = element - below < above - element ? below : above;
        return cut == size ? BlockCut{t + 1, 0} : BlockCut{t, cut};
      }
      element -= size;
    }
    return {table.size(), 0};
  };
  std::vector<BlockShard> shards;
  BlockCut begin;
  double before = 0;  // shares
  for (std::size_t r = 0; r < shares.size(); ++r) {
    before += shares[r];
    auto const end = before >= all ? BlockCut{table.size(), 0}
                                   : nearest(static_cast<std::size_t>(elements * before / all));
    shards.push_back({begin, end});
    begin = end;
  }
  return shards;
}

}  // namespace roundpipe
