// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which rows of a file are held out from training.

#include <roundpipe/core/random.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>

namespace roundpipe {

/// Holds out one of every n rows, at a place that a key draws anew for each n rows; rows behind the
/// last whole n are trained on. Fewer than n rows hold out one of them, a single row none. Needs no
/// memory.
class HeldOutRows {
 public:
  /// \p rows rows; \p every is n, 0 to hold out none. Precondition: \p every is not 1.
  constexpr HeldOutRows(std::uint64_t rows, std::uint64_t every, RandomKey const& key) noexcept
      : rows_(rows), every_(std::min(every, rows)), hash_(hash_key(key)) {
    assert(every != 1);
    held_out_ = every_ < 2 ? 0 : rows_ / every_;
  }

  /// The number of rows that are held out.
  [[nodiscard]] constexpr std::uint64_t held_out() const noexcept { return held_out_; }
  /// The number of rows to train on.
  [[nodiscard]] constexpr std::uint64_t training() const noexcept { return rows_ - held_out_; }

  /// Number \p index of the rows that are held out, in the order of rows.
  [[nodiscard]] constexpr std::uint64_t held_out_row(std::uint64_t index) const noexcept {
    assert(index < held_out_);
    return index * every_ + place(index);
  }
  /// Number \p index of the rows to train on, in the order of rows.
  [[nodiscard]] constexpr std::uint64_t training_row(std::uint64_t index) const noexcept {
    assert(index < training());
    if (held_out_ == 0) {
      return index;
    }
    auto const group = index / (every_ - 1);
    if (group >= held_out_) {  // behind the last whole group
      return index + held_out_;
    }
    auto const within = index % (every_ - 1);
    return group * every_ + within + (within >= place(group) ? 1 : 0);
  }
  [[nodiscard]] constexpr bool is_held_out(std::uint64_t row) const noexcept {
    return held_out_ > 0 && row / every_ < held_out_ && row % every_ == place(row / every_);
  }

 private:
  /// Which row of group number \p group is held out.
  [[nodiscard]] constexpr std::uint64_t place(std::uint64_t group) const noexcept {
    auto const words = random_block(hash_, group);
    return (std::uint64_t{words[1]} << 32 | words[0]) % every_;
  }

  std::uint64_t rows_;
  std::uint64_t every_;
  std::uint64_t held_out_ = 0;
  std::array<std::uint32_t, 4> hash_;
};

}  // namespace roundpipe
