// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Many words of a random stream at a time, in loops that compilers vectorize.

#include <roundpipe/core/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace roundpipe::nn::detail {

/// Draws the words of \ref roundpipe::random_word in batches.
class RandomWords {
 public:
  static constexpr std::size_t batch = 256;

  explicit RandomWords(RandomKey const& key) noexcept : key_(hash_key(key)) {}

  /// \ref batch words from word number \p first on; valid until the next call.
  /// Precondition: \p first is a multiple of 4.
  [[nodiscard]] std::array<std::uint32_t, batch> const& draw(std::uint64_t first) noexcept {
    for (std::size_t i = 0; i < blocks; ++i) {
      auto const block = first / 4 + i;
      c0_[i] = static_cast<std::uint32_t>(block);
      c1_[i] = static_cast<std::uint32_t>(block >> 32);
      c2_[i] = key_[2];
      c3_[i] = key_[3];
    }
    auto k0 = key_[0];
    auto k1 = key_[1];
    for (int round = 0; round < 10; ++round) {  // philox() for all blocks at once
      for (std::size_t i = 0; i < blocks; ++i) {
        auto const p0 = std::uint64_t{0xD2511F53U} * c0_[i];
        auto const p1 = std::uint64_t{0xCD9E8D57U} * c2_[i];
        c0_[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1_[i] ^ k0;
        c1_[i] = static_cast<std::uint32_t>(p1);
        c2_[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3_[i] ^ k1;
        c3_[i] = static_cast<std::uint32_t>(p0);
      }
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    for (std::size_t i = 0; i < blocks; ++i) {
      words_[4 * i] = c0_[i];
      words_[4 * i + 1] = c1_[i];
      words_[4 * i + 2] = c2_[i];
      words_[4 * i + 3] = c3_[i];
    }
    return words_;
  }

 private:
  static constexpr std::size_t blocks = batch / 4;
  using Lane = std::array<std::uint32_t, blocks>;

  std::array<std::uint32_t, 4> key_;
  alignas(64) Lane c0_{};
  alignas(64) Lane c1_{};
  alignas(64) Lane c2_{};
  alignas(64) Lane c3_{};
  alignas(64) std::array<std::uint32_t, batch> words_{};
};

}  // namespace roundpipe::nn::detail
