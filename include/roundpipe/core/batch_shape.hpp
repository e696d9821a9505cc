// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The extents of a micro-batch, from which a layer derives the shapes of its tensors.

#include <compare>
#include <cstdint>

namespace roundpipe {

/// The extents of one micro-batch: \c rows samples of \c length positions each. Samples without
/// positions (images, feature vectors) have length 1.
///
/// A plan is made for a *capacity*; each micro-batch then brings its own, smaller or equal extents.
/// The bytes that a layer declares must not grow when an extent shrinks.
struct BatchShape {
  std::int64_t rows = 1;
  std::int64_t length = 1;

  /// The number of positions: rows times length.
  [[nodiscard]] constexpr std::int64_t positions() const noexcept { return rows * length; }
  /// Whether a micro-batch of these extents fits into \p capacity.
  [[nodiscard]] constexpr bool fits(BatchShape const& capacity) const noexcept {
    return rows >= 1 && length >= 1 && rows <= capacity.rows && length <= capacity.length;
  }
  friend constexpr auto operator<=>(BatchShape const&, BatchShape const&) noexcept = default;
  friend constexpr bool operator==(BatchShape const&, BatchShape const&) noexcept = default;
};

}  // namespace roundpipe
