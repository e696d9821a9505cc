// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which part of each parameter block which rank updates.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace roundpipe {

/// Blocks are cut between tensors, and inside one at multiples of so many elements of it; reason:
/// the squares of so many are summed together (`norm_block_size`), and those of each cut piece
/// must be sums of one process.
inline constexpr std::size_t shard_grain = 4096;

/// A place between two elements of a block.
struct BlockCut {
  std::size_t tensor = 0;   ///< As many as the block has: the end.
  std::size_t element = 0;  ///< Of the tensor.

  friend bool operator==(BlockCut const&, BlockCut const&) = default;
};

/// Consecutive elements of a tensor.
struct ElementRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] constexpr std::size_t size() const noexcept { return end - begin; }
  friend bool operator==(ElementRange const&, ElementRange const&) = default;
};

/// Consecutive bytes of a block.
struct ByteRange {
  Bytes begin = 0;
  Bytes end = 0;

  [[nodiscard]] constexpr Bytes size() const noexcept { return end - begin; }
  friend bool operator==(ByteRange const&, ByteRange const&) = default;
};

/// Consecutive elements of a block: what one rank keeps and updates of it.
struct BlockShard {
  BlockCut begin;
  BlockCut end;

  /// The elements of tensor \p t, of \p size elements, in the shard.
  [[nodiscard]] ElementRange of_tensor(std::size_t t, std::size_t size) const noexcept;
  /// The bytes of the shard in a block that \p table describes, the padding behind its tensors
  /// included.
  [[nodiscard]] ByteRange bytes(TensorTable const& table) const noexcept;
  /// Where the elements of tensor \p t that the shard has begin, in bytes from the shard's first.
  [[nodiscard]] Bytes offset(std::size_t t, TensorTable const& table) const noexcept;

  friend bool operator==(BlockShard const&, BlockShard const&) = default;
};

/// The parts of \p table's block for ranks of these \p shares, in their order: in proportion to
/// the shares, as far as cuts at multiples of \ref shard_grain allow. Shares are finite, not
/// negative and not all 0. A tensor for which \p is_whole(t) is true belongs to one rank.
[[nodiscard]] std::vector<BlockShard> cut_block(
    TensorTable const& table,
    std::span<double const> shares,
    std::function<bool(std::size_t)> const& is_whole = {});

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/block_shards.ipp>
#endif
