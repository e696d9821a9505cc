// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Counter-based random numbers: a key and an index determine each number, whoever draws it
/// and whenever, so that a recomputation on another device draws the same numbers.

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace roundpipe {

/// Names one stream of random numbers.
struct RandomKey {
  std::uint64_t seed = 0;         ///< The run's seed.
  std::uint32_t step = 0;         ///< The number of training calls before this one.
  std::uint32_t layer = 0;        ///< The layer's index.
  std::uint32_t micro_batch = 0;  ///< The micro-batch of the call.
  std::uint32_t stream = 0;       ///< Free for the layer: one number for each use.

  [[nodiscard]] constexpr RandomKey with_stream(std::uint32_t s) const noexcept {
    auto key = *this;
    key.stream = s;
    return key;
  }
  friend constexpr bool operator==(RandomKey const&, RandomKey const&) noexcept = default;
};

/// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
/// section 3.3 and table 2): four random words from a 128-bit counter and a 64-bit key.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    auto const p0 = std::uint64_t{0xD2511F53U} * counter[0];
    auto const p1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(p0)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

/// \p key in the form that \ref random_block reads; make it once for many blocks. A key has more
/// bits than Philox accepts, so one pass hashes the key to a Philox key (the first half) and half
/// of a counter.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> hash_key(RandomKey const& key) noexcept {
  return philox({key.step, key.layer, key.micro_batch, key.stream},
                {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
}

/// The four words of block number \p block in the stream whose key was hashed to \p hash.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> random_block(
    std::array<std::uint32_t, 4> const& hash, std::uint64_t block) noexcept {
  return philox({static_cast<std::uint32_t>(block),
                 static_cast<std::uint32_t>(block >> 32),
                 hash[2],
                 hash[3]},
                {hash[0], hash[1]});
}
/// The four words of block number \p block in the stream \p key.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> random_block(RandomKey const& key,
                                                                  std::uint64_t block) noexcept {
  return random_block(hash_key(key), block);
}

/// Word number \p index of the stream \p key.
[[nodiscard]] constexpr std::uint32_t random_word(RandomKey const& key,
                                                  std::uint64_t index) noexcept {
  return random_block(key, index / 4)[index % 4];
}

/// A number in [0, 1) from a random word.
[[nodiscard]] constexpr float uniform(std::uint32_t word) noexcept {
  return static_cast<float>(word >> 8) * 0x1p-24F;
}

/// Standard normal numbers 2 \p pair and 2 \p pair + 1 of the stream of \p hash (Box and Muller
/// 1958). Each number uses two words and only the cosine.
[[nodiscard]] inline std::array<float, 2> normal_pair(std::array<std::uint32_t, 4> const& hash,
                                                      std::uint64_t pair) {
  auto const words = random_block(hash, pair);
  auto const from = [](std::uint32_t first, std::uint32_t second) {
    auto const u = (static_cast<double>(first) + 1.0) * 0x1p-32;  // in (0, 1]
    auto const v = static_cast<double>(second) * 0x1p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
  };
  return {from(words[0], words[1]), from(words[2], words[3])};
}
/// Standard normal number \p index of the stream \p key.
[[nodiscard]] inline float normal(RandomKey const& key, std::uint64_t index) {
  return normal_pair(hash_key(key), index / 2)[index % 2];
}

}  // namespace roundpipe
