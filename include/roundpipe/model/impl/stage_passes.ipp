// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

template <class F>
[[nodiscard]] std::vector<Pass> list_passes(LayerRange range, F&& of_layer) {
  std::vector<Pass> passes;
  auto const add = [&](std::size_t layer, bool backward) {
    for (auto pass : of_layer(layer)) {
      if (pass.runs_backward() == backward) {
        pass.layer = layer;
        passes.push_back(pass);
      }
    }
  };
  for (auto layer = range.first; layer < range.end(); ++layer) {
    add(layer, false);
  }
  for (auto layer = range.end(); layer-- > range.first;) {
    add(layer, true);
  }
  return passes;
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<Pass> passes_over(std::span<Pass const> of_layer, LayerRange range) {
  return detail::list_passes(range, [&](std::size_t) { return of_layer; });
}

ROUNDPIPE_INLINE std::vector<Pass> passes_over(StageKind kind,
                                               LayerRange range,
                                               std::function<bool(std::size_t)> const& offloads) {
  return detail::list_passes(
      range, [&](std::size_t layer) { return layer_passes(kind, offloads(layer)); });
}

ROUNDPIPE_INLINE bool has_fused_stage(Partition const& partition) {
  std::size_t covered = 0;
  for (auto const& range : partition.forward) {
    covered = std::max(covered, range.end());
  }
  return !partition.backward.empty() &&
         backward_kind(partition.backward.front().end() <= covered) == StageKind::fused;
}

ROUNDPIPE_INLINE std::vector<Stage> stages_of(Partition const& partition) {
  std::vector<Stage> stages;
  for (auto const& range : partition.forward) {
    stages.push_back({StageKind::forward, range});
  }
  auto kind = backward_kind(!has_fused_stage(partition));
  for (auto const& range : partition.backward) {
    stages.push_back({std::exchange(kind, StageKind::backward), range});
  }
  return stages;
}

}  // namespace roundpipe
