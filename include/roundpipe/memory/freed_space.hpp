// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Places within memory that others have left.

#include <roundpipe/core/bytes.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace roundpipe::detail {

/// Hands out places in memory that has become free, before it takes more.
class FreedSpace {
 public:
  /// All behind \p end is free.
  explicit FreedSpace(Bytes end) noexcept : end_(end) {}

  /// Where memory has ended so far.
  [[nodiscard]] Bytes end() const noexcept { return end_; }

  void free(Bytes offset, Bytes bytes) {
    if (bytes == 0) {
      return;
    }
    auto const next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + bytes) {
      bytes += next->second;
      free_.erase(next);
    }
    auto const inserted = free_.emplace(offset, bytes).first;
    if (inserted != free_.begin()) {
      if (auto const before = std::prev(inserted); before->first + before->second == offset) {
        before->second += bytes;
        free_.erase(inserted);
      }
    }
  }

  /// The last free \p bytes. Who frees memory from its end on finds what is left of a space joined
  /// to what is freed next.
  [[nodiscard]] Bytes take(Bytes bytes) {
    auto const found = std::find_if(
        free_.rbegin(), free_.rend(), [&](auto const& space) { return space.second >= bytes; });
    if (found == free_.rend()) {
      return std::exchange(end_, end_ + bytes);
    }
    auto const offset = found->first;
    auto const rest = found->second -= bytes;
    if (rest == 0) {
      free_.erase(offset);
    }
    return offset + rest;
  }

 private:
  Bytes end_;
  std::map<Bytes, Bytes> free_;  // bytes by offset; no two touch
};

}  // namespace roundpipe::detail
