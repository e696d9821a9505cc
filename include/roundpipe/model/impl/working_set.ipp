// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE void WorkingSet::set_level(std::size_t layer,
                                            std::size_t micro_batch,
                                            std::size_t level) {
  require(layer < level_bytes_.size() && micro_batch < micro_batches_ &&
              level < level_bytes_[layer].size(),
          Errc::invalid_argument,
          "a working set names a layer, a micro-batch or a save level that there is not");
  levels_[layer * micro_batches_ + micro_batch] = static_cast<std::uint8_t>(level);
}

ROUNDPIPE_INLINE std::size_t WorkingSet::count(std::size_t layer) const noexcept {
  std::size_t sum = 0;
  for (std::size_t m = 0; m < micro_batches_; ++m) {
    sum += level(layer, m) > 0 ? 1 : 0;
  }
  return sum;
}

ROUNDPIPE_INLINE Bytes WorkingSet::most_bytes(std::size_t layer) const noexcept {
  Bytes most = 0;
  for (std::size_t m = 0; m < micro_batches_; ++m) {
    most = std::max(most, bytes(layer, m));
  }
  return most;
}

}  // namespace roundpipe
