// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Pinned memory that a backend's caller has lent, and that the backend cuts slabs from.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace roundpipe::cu::detail {

/// Blocks of host memory, each cut from its beginning. Any thread may call any member.
class LentMemory {
 public:
  /// The memory must outlive what is cut from it.
  explicit LentMemory(std::vector<HostBytes> blocks) : rests_(std::move(blocks)) {
    for (auto const& block : rests_) {
      bytes_ += block.size();
    }
  }

  /// All that was lent.
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }

  /// \p bytes that nobody has been given yet, aligned as their block is, up to 256 bytes. Empty
  /// where no block has so many left.
  [[nodiscard]] HostBytes take(Bytes bytes) {
    std::lock_guard const lock(mutex_);
    for (auto& rest : rests_) {
      if (bytes > 0 && rest.size() >= bytes) {
        auto const part = rest.first(bytes);
        rest = rest.subspan(std::min(align_up(bytes), rest.size()));
        return part;
      }
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::vector<HostBytes> rests_;
  Bytes bytes_ = 0;
};

}  // namespace roundpipe::cu::detail
