// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/costs_by_rows.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE void CostsByRows::add(std::int64_t rows, CostModel costs) {
  require(costs_.empty() || costs_.begin()->second.layers().size() == costs.layers().size(),
          Errc::invalid_argument,
          "costs by size are of one model");
  costs_.emplace(rows, std::move(costs));
}

ROUNDPIPE_INLINE std::optional<CostModel> CostsByRows::find(std::int64_t rows) const {
  auto const more = costs_.lower_bound(rows);
  if (more == costs_.end()) {
    return std::nullopt;
  }
  if (more->first == rows) {
    return more->second;
  }
  if (more == costs_.begin()) {
    return std::nullopt;
  }
  auto const less = std::prev(more);
  auto const share =
      static_cast<double>(rows - less->first) / static_cast<double>(more->first - less->first);
  auto layers = less->second.layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto const& end = more->second.layers()[i];
    auto& layer = layers[i];
    layer.forward_s = std::lerp(layer.forward_s, end.forward_s, share);
    layer.backward_s = std::lerp(layer.backward_s, end.backward_s, share);
    for (std::size_t level = 0; level < layer.replay_s.size(); ++level) {
      layer.replay_s[level] = std::lerp(layer.replay_s[level], end.replaying_s(level), share);
    }
  }
  CostModel costs(std::move(layers));
  costs.set_network(less->second.network());
  return costs;
}

}  // namespace roundpipe
