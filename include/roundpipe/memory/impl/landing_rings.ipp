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
    : rings_(1, std::vector<std::size_t>(blocks.uses.size(), none)) {
  for (std::size_t use = 0; use < blocks.uses.size(); ++use) {
    if (blocks.block_of(BlockUseId(use)).sums_gradient) {
      rings_.front()[use] = add(blocks, BlockUseId(use));
    }
  }
}

ROUNDPIPE_INLINE LandingRings::LandingRings(ParameterBlocks const& blocks,
                                            std::span<StageLayout const> stages,
                                            std::size_t devices,
                                            std::size_t rounds) {
  std::vector<StageLayout const*> backward;
  for (auto const& stage : stages) {
    if (stage.has_backward()) {
      backward.push_back(&stage);
    }
  }
  if (backward.empty()) {
    return;
  }
  // Where rounds take turns, each of their stages has rings of its own.
  auto const rounds_at_once =
      std::clamp((devices + backward.size() - 1) / backward.size(), std::size_t{1}, rounds);
  rings_.assign(rounds_at_once, std::vector<std::size_t>(blocks.uses.size(), none));
  std::vector<std::vector<std::size_t>> shared(  // rings, by stages that share them
      rounds_at_once > 1 ? rounds_at_once * backward.size() : devices);
  std::size_t turn = 0;
  for (auto& round : rings_) {
    for (auto const* const stage : backward) {
      auto& rings = shared[turn++ % shared.size()];
      std::size_t next = 0;
      for (auto const& place : stage->uses) {
        auto const& block = blocks.block_of(place.use);
        if (!block.sums_gradient) {
          continue;
        }
        auto& ring = round[place.use.index()];
        if (block.uses.size() > 1) {
          ring = add(blocks, place.use);
          continue;
        }
        if (next == rings.size()) {
          rings.push_back(bytes_.size());
          bytes_.push_back(0);
        }
        ring = rings[next++];
        bytes_[ring] = std::max(bytes_[ring], block.master.bytes());
      }
    }
  }
}

ROUNDPIPE_INLINE std::size_t LandingRings::index(BlockUseId use, RoundId round) const {
  require(
      !rings_.empty() && use.index() < rings_.front().size() && rings_.front()[use.index()] != none,
      Errc::invalid_argument,
      "the gradient of that use is not summed");
  return rings_[round.index() % rings_.size()][use.index()];
}

ROUNDPIPE_INLINE Bytes LandingRings::bytes() const {
  Bytes sum = 0;
  for (auto const each : bytes_) {
    sum += align_up(each);
  }
  return sum;
}

ROUNDPIPE_INLINE std::size_t LandingRings::add(ParameterBlocks const& blocks, BlockUseId use) {
  bytes_.push_back(blocks.block_of(use).master.bytes());
  return bytes_.size() - 1;
}

}  // namespace roundpipe
