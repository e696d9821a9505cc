// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A pseudo-random permutation without a table: each element is computed by itself.

#include <roundpipe/core/random.hpp>

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

namespace roundpipe {

/// A permutation of 0 to size - 1 by a key: a Feistel network (Luby and Rackoff 1988) over the next
/// power of four, whose rounds are Philox. Elements that leave the range go through the network
/// again until they are back in it ("cycle walking": Black and Rogaway, "Ciphers with arbitrary
/// finite domains", CT-RSA 2002, section 3), fewer than four times on average. Needs no memory, so
/// a shuffled order can be entered anywhere.
class RandomPermutation {
 public:
  /// Precondition: \p size is at least 1.
  constexpr RandomPermutation(std::uint64_t size, RandomKey const& key) noexcept
      : size_(size),
        half_bits_(size > 1 ? (static_cast<unsigned>(std::bit_width(size - 1)) + 1) / 2 : 1),
        hash_(hash_key(key)) {
    assert(size > 0);
  }

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return size_; }

  /// Element \p index. Precondition: \p index is below the size.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t index) const noexcept {
    assert(index < size_);
    do {
      index = encrypt(index);
    } while (index >= size_);
    return index;
  }

 private:
  /// A permutation of the numbers of 2 half_bits_ bits.
  [[nodiscard]] constexpr std::uint64_t encrypt(std::uint64_t number) const noexcept {
    constexpr std::uint64_t rounds = 8;  // four would do for large ranges; small ones need more
    auto const mask = (std::uint64_t{1} << half_bits_) - 1;
    auto left = number >> half_bits_;
    auto right = number & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      auto const next = left ^ (random_block(hash_, round << 32 | right)[0] & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  std::uint64_t size_;
  unsigned half_bits_;  // at most 32
  std::array<std::uint32_t, 4> hash_;
};

}  // namespace roundpipe
