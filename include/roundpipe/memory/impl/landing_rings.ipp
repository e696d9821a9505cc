// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/landing_rings.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE LandingRings::LandingRings(ParameterBlocks const& blocks)
    : rings_(blocks.uses.size(), none) {
  for (std::size_t use = 0; use < blocks.uses.size(); ++use) {
    if (blocks.block_of(BlockUseId(use)).sums_gradient) {
      add(blocks, BlockUseId(use));
    }
  }
}

ROUNDPIPE_INLINE LandingRings::LandingRings(ParameterBlocks const& blocks,
                                            std::span<StageLayout const> stages,
                                            std::size_t devices)
    : rings_(blocks.uses.size(), none) {
  std::vector<std::vector<std::size_t>> shared(devices);  // rings, by stages that share them
  std::size_t backward_stages = 0;
  for (auto const& stage : stages) {
    if (!stage.has_backward()) {
      continue;
    }
    auto& rings = shared[backward_stages++ % devices];
    std::size_t next = 0;
    for (auto const& place : stage.uses) {
      auto const& block = blocks.block_of(place.use);
      if (!block.sums_gradient) {
        continue;
      }
      if (block.uses.size() > 1) {
        add(blocks, place.use);
        continue;
      }
      if (next == rings.size()) {
        rings.push_back(bytes_.size());
        bytes_.push_back(0);
      }
      auto const ring = rings[next++];
      rings_[place.use.index()] = ring;
      bytes_[ring] = std::max(bytes_[ring], block.master.bytes());
    }
  }
}

ROUNDPIPE_INLINE std::size_t LandingRings::index(BlockUseId use) const {
  require(use.index() < rings_.size() && rings_[use.index()] != none,
          Errc::invalid_argument,
          "the gradient of that use is not summed");
  return rings_[use.index()];
}

ROUNDPIPE_INLINE Bytes LandingRings::bytes() const {
  Bytes sum = 0;
  for (auto const each : bytes_) {
    sum += align_up(each);
  }
  return sum;
}

ROUNDPIPE_INLINE void LandingRings::add(ParameterBlocks const& blocks, BlockUseId use) {
  rings_[use.index()] = bytes_.size();
  bytes_.push_back(blocks.block_of(use).master.bytes());
}

}  // namespace roundpipe
