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

  friend constexpr bool operator==(LevelWorth const&, LevelWorth const&) noexcept = default;
};

/// A layer's forward for one micro-batch, whose save may go to the host.
struct SaveCandidate {
  std::int64_t compute = 0;  ///< The time of the forward.
  std::int64_t copied = 0;   ///< What goes to the host behind it in any case: a checkpoint.
  /// How long the save may be on its way after the forward's end: until its memory is needed again.
  std::int64_t slack = 0;
  std::vector<LevelWorth> levels;  ///< From level 1 on; transfers and spared times ascend.
};

/// \brief Sets each candidate's slack for memory of \p saves layers.
///
/// AdaWS (Sheinberg and Li): with room for the saves of W consecutive layers, that of layer i must
/// have left before layer i + W starts, `finishTransfer_i < startCompute_{i+W}`. One entry is
/// written while another leaves, so W is at least 2; with fewer, no save has any slack.
void set_slack(std::span<SaveCandidate> candidates, std::size_t saves);

/// \brief The save level of each of \p candidates, which a device computes in this order.
///
/// The levels spare the most time of all choices in which no save stalls compute. Transfers go one
/// after another, each after its forward; that of a save ends within the candidate's slack. What
/// goes to the host in any case has no limit. A dynamic program over the time by which the link
/// lags behind the compute: of all choices for the first candidates it keeps those that no other
/// one beats in both lag and spared time. Exact, in at most
/// `candidates x levels x (largest slack + 1)` steps, and repeatable.
[[nodiscard]] std::vector<std::size_t> choose_levels(std::span<SaveCandidate const> candidates);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/level_policy.ipp>
#endif
