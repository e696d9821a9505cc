// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_memory.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE RangeMaximum::RangeMaximum(std::vector<Bytes> values)
    : levels_{std::move(values)} {
  for (std::size_t width = 1; 2 * width <= levels_.front().size(); width *= 2) {
    auto const& halves = levels_.back();
    std::vector<Bytes> level(halves.size() - width);
    for (std::size_t i = 0; i < level.size(); ++i) {
      level[i] = std::max(halves[i], halves[i + width]);
    }
    levels_.push_back(std::move(level));
  }
}

}  // namespace detail

ROUNDPIPE_INLINE StageMemory::StageMemory(std::span<LayerBytes const> layers, Buffering buffering)
    : buffering_(buffering),
      boundaries_(aligned(layers, &LayerBytes::boundary_bytes)),
      largest_boundary_(boundaries_),
      largest_workspace_(aligned(layers, &LayerBytes::workspace_bytes)) {
  for (std::size_t kind = 0; kind < stage_kind_count; ++kind) {
    sums_[kind].emplace_back();
    for (auto const& layer : layers) {
      auto sum = sums_[kind].back();
      sums_[kind].push_back(sum += bytes_of(layer_passes(static_cast<StageKind>(kind)), layer));
    }
  }
}

ROUNDPIPE_INLINE StageBytes StageMemory::terms(StageDirection direction, LayerRange range) const {
  require(range.count > 0 && range.first < layers() && range.count <= layers() - range.first,
          Errc::invalid_argument,
          "a stage has layers that the model does not have");
  auto const kind = stage_kind(direction, range, layers());
  auto const passes = layer_passes(kind);
  auto const& sums = sums_[static_cast<std::size_t>(kind)];
  auto const held = sums[range.end()] - sums[range.first];
  auto const input = range.first > 0 ? boundaries_[range.first - 1] : 0;
  auto const last = range.end() - 1;
  auto const output = range.end() < layers() ? boundaries_[last] : align_up(sizeof(double));
  auto const hands_on = writes(passes, PassData::output);
  auto const unread = kind == StageKind::backward ? boundaries_[last] : 0;
  return {held.parameters * buffering_.parameters,
          held.gradients * buffering_.gradients,
          (input + (writes(passes, PassData::input_gradient) ? input : 0) +
           (hands_on ? output : boundaries_[last])) *
              buffering_.activations,
          held.saved - unread,
          2 * largest_boundary_.of(range.first, range.end()) +
              largest_workspace_.of(range.first, range.end())};
}

ROUNDPIPE_INLINE Bytes StageMemory::least() const {
  auto result = std::numeric_limits<Bytes>::max();
  auto const forward = least_of(StageDirection::forward);
  auto const backward = least_of(StageDirection::backward);
  for (std::size_t first = 0; first < layers(); ++first) {
    auto const fused = bytes(StageDirection::backward, {first, layers() - first});
    result = std::min(result, std::max({forward[first], backward[first], fused}));
  }
  return result;
}

ROUNDPIPE_INLINE std::vector<Bytes> StageMemory::aligned(std::span<LayerBytes const> layers,
                                                         Figure figure) {
  std::vector<Bytes> result;
  for (auto const& layer : layers) {
    result.push_back(align_up(layer.*figure));
  }
  return result;
}

ROUNDPIPE_INLINE std::vector<Bytes> StageMemory::least_of(StageDirection direction) const {
  std::vector<Bytes> least(layers(), std::numeric_limits<Bytes>::max());
  least[0] = 0;
  for (std::size_t end = 1; end < layers(); ++end) {
    for (std::size_t first = 0; first < end; ++first) {
      least[end] =
          std::min(least[end], std::max(least[first], bytes(direction, {first, end - first})));
    }
  }
  return least;
}

}  // namespace roundpipe
