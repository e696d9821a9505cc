// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The times of all stages of a model as whole numbers, whose sums are exact.

#include <roundpipe/concepts/partition_policy.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundpipe::detail {

/// A time as a multiple of a power of two of seconds.
using Ticks = std::int64_t;

/// \brief Stage times from prefix sums, in constant time each.
///
/// Differences of prefix sums of floating-point numbers depend on where a stage lies: of two stages
/// of equal layers one would seem slower. Ticks are so short that no sum of all layers' times needs
/// more than 62 bits, and are at most 2^-50 of the longest time of a layer for 1,000 layers.
class StageTicks {
 public:
  /// Of finite times that are not negative.
  explicit StageTicks(std::span<LayerCost const> costs)
      : forward_(costs.size() + 1), backward_(costs.size() + 1), fused_(costs.size() + 1) {
    double longest = 0;
    for (auto const& cost : costs) {
      longest = std::max({longest, cost.forward_s, cost.recomputing_s(), cost.backward_s});
    }
    int exponent = 0;
    std::frexp(longest, &exponent);
    auto const shift = 62 - static_cast<int>(std::bit_width(2 * costs.size())) - exponent;
    auto const ticks = [&](double s) {
      return static_cast<Ticks>(std::llround(std::ldexp(s, shift)));
    };
    for (std::size_t i = 0; i < costs.size(); ++i) {
      auto const forward = ticks(costs[i].forward_s);
      auto const backward = ticks(costs[i].backward_s);
      forward_[i + 1] = forward_[i] + forward;
      backward_[i + 1] = backward_[i] + ticks(costs[i].recomputing_s()) + backward;
      fused_[i + 1] = fused_[i] + forward + backward;
    }
  }

  [[nodiscard]] std::size_t layers() const noexcept { return forward_.size() - 1; }

  /// The time of the layers [first, end) as a stage that does not hold the last layer.
  [[nodiscard]] Ticks stage(StageDirection direction, std::size_t first, std::size_t end) const {
    auto const& sums = prefixes(direction);
    return sums[end] - sums[first];
  }
  /// The time of the fused stage that begins with layer \p first.
  [[nodiscard]] Ticks fused(std::size_t first) const { return fused_.back() - fused_[first]; }

  /// By number of layers: the time of the first ones as one stage.
  [[nodiscard]] std::vector<Ticks> const& prefixes(StageDirection direction) const noexcept {
    return direction == StageDirection::forward ? forward_ : backward_;
  }

  /// The first layer of the longest fused stage that takes no more than \p t_max; \c layers() when
  /// none does.
  [[nodiscard]] std::size_t first_fused(Ticks t_max) const {
    auto const least = fused_.back() - t_max;  // what the layers before it take
    return static_cast<std::size_t>(std::ranges::lower_bound(fused_, least) - fused_.begin());
  }

  /// No partition has a shorter slowest stage: whatever runs a layer first runs its forward, and a
  /// backward stage recomputes it unless that stage is the fused one.
  [[nodiscard]] Ticks slowest_layer() const {
    Ticks slowest = 0;
    for (std::size_t i = 0; i < layers(); ++i) {
      auto const fused = fused_[i + 1] - fused_[i];
      auto const backward = backward_[i + 1] - backward_[i];
      slowest = std::max({slowest,
                          forward_[i + 1] - forward_[i],
                          i + 1 == layers() ? fused : std::min(fused, backward)});
    }
    return slowest;
  }

  /// No stage takes longer.
  [[nodiscard]] Ticks whole_model() const {
    return std::max({forward_.back(), backward_.back(), fused_.back()});
  }

 private:
  std::vector<Ticks> forward_;
  std::vector<Ticks> backward_;
  std::vector<Ticks> fused_;
};

}  // namespace roundpipe::detail
