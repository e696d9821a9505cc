// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <span>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE StageTicks::StageTicks(std::span<LayerCost const> costs) {
  double longest = 0;
  for (auto const& cost : costs) {
    for (auto const kind : kinds) {
      for (auto const& pass : layer_passes(kind)) {
        longest = std::max(longest, seconds_of(pass.kind, cost));
      }
    }
  }
  int exponent = 0;
  std::frexp(longest, &exponent);
  auto const shift = 62 - static_cast<int>(std::bit_width(2 * costs.size())) - exponent;
  for (auto const kind : kinds) {
    auto& sums = sums_[static_cast<std::size_t>(kind)];
    sums.assign(1, 0);
    for (auto const& cost : costs) {
      auto sum = sums.back();
      for (auto const& pass : layer_passes(kind)) {
        sum += static_cast<Ticks>(std::llround(std::ldexp(seconds_of(pass.kind, cost), shift)));
      }
      sums.push_back(sum);
    }
  }
}

ROUNDPIPE_INLINE std::size_t StageTicks::first_fused(Ticks t_max) const {
  auto const& sums = of(StageKind::fused);
  auto const least = sums.back() - t_max;  // what the layers before it take
  return static_cast<std::size_t>(std::lower_bound(sums.begin(), sums.end(), least) - sums.begin());
}

ROUNDPIPE_INLINE Ticks StageTicks::slowest_layer() const {
  Ticks slowest = 0;
  for (std::size_t i = 0; i < layers(); ++i) {
    auto const alone = [&](StageKind kind) { return of(kind)[i + 1] - of(kind)[i]; };
    auto const backward = i + 1 == layers()
                              ? alone(StageKind::fused)
                              : std::min(alone(StageKind::fused), alone(StageKind::backward));
    slowest = std::max({slowest, alone(StageKind::forward), backward});
  }
  return slowest;
}

ROUNDPIPE_INLINE Ticks StageTicks::whole_model() const {
  return std::max(
      {of(StageKind::forward).back(), of(StageKind::backward).back(), of(StageKind::fused).back()});
}

}  // namespace detail

}  // namespace roundpipe
