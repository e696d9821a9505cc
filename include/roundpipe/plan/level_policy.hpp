// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Chooses save levels: what the link carries to the host while the device computes.

#include <roundpipe/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace roundpipe {

/// What a save level takes and what it is worth. Times are whole ticks of any length.
struct LevelWorth {
  std::int64_t transfer = 0;  ///< On the way to the host.
  std::int64_t spared = 0;    ///< Of recomputation.
  /// By how much the link may lag behind the end of the forward, with what goes before: else the
  /// memory of this save, or of another, would be needed while it is on its way. Negative: never.
  std::int64_t most_lag = 0;
};

/// A layer's forward for one micro-batch, whose save may go to the host.
struct SaveCandidate {
  std::int64_t compute = 0;        ///< The time of the forward.
  std::vector<LevelWorth> levels;  ///< From level 1 on.
};

/// \brief Sets what lag a ring of \p entries saves allows.
///
/// A save takes an entry from the beginning of its forward until it is on the host, and so do those
/// before it that are still on their way. If those are of the same level, fewer than \p entries are
/// on their way where the link lags by less than `entries - 1` of them; smaller ones may be more.
void limit_lag(std::span<SaveCandidate> candidates, std::size_t entries);

/// \brief The save level of each of \p candidates, which a device computes in this order.
///
/// The levels spare the most time of all choices in which no link lags more than the levels allow.
/// Transfers go one after another, each after its forward, and nothing else is on the link. A
/// dynamic program over the time by which the link lags behind the compute: of all choices for the
/// first candidates it keeps those that no other one beats in both lag and spared time. Exact, in
/// at most `candidates x levels x (largest lag + 1)` steps, and repeatable.
[[nodiscard]] std::vector<std::size_t> choose_levels(std::span<SaveCandidate const> candidates);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/level_policy.ipp>
#endif
