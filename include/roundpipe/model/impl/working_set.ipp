// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE WorkingSet::Levels::Levels(LevelBytes const& level_bytes,
                                            std::size_t micro_batches)
    : of(level_bytes.size() * micro_batches) {
  for (auto const& bytes : level_bytes) {
    counts.emplace_back(std::max<std::size_t>(bytes.size(), 1)).front() = micro_batches;
  }
}

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
  if (levels_.use_count() > 1) {
    levels_ = std::make_shared<Levels>(*levels_);
  }
  auto& own = levels_->of[layer * micro_batches_ + micro_batch];
  auto& counts = levels_->counts[layer];
  --counts[own];
  ++counts[level];
  own = static_cast<std::uint8_t>(level);
}

ROUNDPIPE_INLINE Bytes WorkingSet::most_bytes(std::size_t layer) const noexcept {
  Bytes most = 0;
  for_each_set([&](WorkingSet const& set) {
    set.for_each_level(
        layer, [&](std::size_t level) { most = std::max(most, set.bytes_of(layer, level)); });
  });
  return most;
}

}  // namespace roundpipe
