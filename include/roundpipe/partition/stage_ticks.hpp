// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The times of all stages of a model as whole numbers, whose sums are exact.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundpipe::detail {

/// A time as a multiple of a power of two of seconds.
using Ticks = std::int64_t;

/// \brief Stage times from prefix sums, in constant time each.
///
/// Differences of floating-point prefix sums depend on where a stage lies: one of two stages with
/// equal layers would seem slower. Whole ticks have no such error. Their length makes all layers'
/// times together fit 62 bits; with 1,000 layers a tick is at most 2^-50 of the longest pass.
class StageTicks {
 public:
  /// Of finite times that are not negative.
  explicit StageTicks(std::span<LayerCost const> costs);

  [[nodiscard]] std::size_t layers() const noexcept { return of(StageKind::forward).size() - 1; }

  /// The time of the layers [first, end) as a stage that does not hold the last layer.
  [[nodiscard]] Ticks stage(StageDirection direction, std::size_t first, std::size_t end) const {
    auto const& sums = prefixes(direction);
    return sums[end] - sums[first];
  }
  /// The time of the fused stage that begins with layer \p first.
  [[nodiscard]] Ticks fused(std::size_t first) const {
    return of(StageKind::fused).back() - of(StageKind::fused)[first];
  }

  /// By number of layers: the time of so many first layers as one stage.
  [[nodiscard]] std::vector<Ticks> const& prefixes(StageDirection direction) const noexcept {
    return of(direction == StageDirection::forward ? StageKind::forward : StageKind::backward);
  }

  /// The first layer of the longest fused stage that takes no more than \p t_max; \c layers() when
  /// none does.
  [[nodiscard]] std::size_t first_fused(Ticks t_max) const;

  /// No partition has a shorter slowest stage: each layer runs in a forward and a backward stage,
  /// or in the fused one.
  [[nodiscard]] Ticks slowest_layer() const;

  /// No stage takes longer.
  [[nodiscard]] Ticks whole_model() const;

 private:
  static constexpr StageKind kinds[] = {StageKind::forward, StageKind::fused, StageKind::backward};

  [[nodiscard]] std::vector<Ticks> const& of(StageKind kind) const noexcept {
    return sums_[static_cast<std::size_t>(kind)];
  }

  /// By kind of stage: of so many of the model's first layers.
  std::array<std::vector<Ticks>, stage_kind_count> sums_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/stage_ticks.ipp>
#endif
