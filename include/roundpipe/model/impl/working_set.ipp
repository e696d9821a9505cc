// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE void WorkingSet::set_level(std::size_t layer,
                                            std::size_t micro_batch,
                                            std::size_t level) {
  auto const levels = layer < layers() ? (*level_bytes_)[layer].size() : 0;
  if (micro_batch >= micro_batches_ || level >= levels) {
    throw Error(Errc::invalid_argument,
                "save level " + std::to_string(level) + " of layer " + std::to_string(layer) +
                    " and micro-batch " + std::to_string(micro_batch) + ": the layer has " +
                    std::to_string(levels) + " levels, from 0 on, and a round " +
                    std::to_string(micro_batches_) + " micro-batches");
  }
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
  for_each_set([&](WorkingSet const& set) {
    for (std::size_t m = 0; m < micro_batches_; ++m) {
      most = std::max(most, set.bytes(layer, m));
    }
  });
  return most;
}

}  // namespace roundpipe
