// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The extents of a micro-batch, from which a layer derives the shapes of its tensors, and
/// how a batch is cut into micro-batches.

#include <compare>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// Of one call: many more than any call has, and few enough that a plan can count their bytes.
inline constexpr std::size_t most_micro_batches = std::size_t{1} << 20;

/// The extents of one micro-batch: \c rows samples of \c length positions each. Samples without
/// positions (images, feature vectors) have length 1.
///
/// A plan is made for a *capacity*. Each micro-batch brings its own extents, none above the
/// capacity's. When an extent shrinks, a layer must not declare more bytes.
struct BatchShape {
  std::int64_t rows = 1;
  std::int64_t length = 1;

  /// The number of positions: rows times length.
  [[nodiscard]] constexpr std::int64_t positions() const noexcept { return rows * length; }
  /// Whether \p capacity holds a micro-batch of these extents.
  [[nodiscard]] constexpr bool fits(BatchShape const& capacity) const noexcept {
    return rows >= 1 && length >= 1 && rows <= capacity.rows && length <= capacity.length;
  }
  friend constexpr auto operator<=>(BatchShape const&, BatchShape const&) noexcept = default;
  friend constexpr bool operator==(BatchShape const&, BatchShape const&) noexcept = default;
};

/// How a batch is cut: into rounds of equal micro-batches. A 0 leaves the choice open.
struct BatchCut {
  std::int64_t rows = 0;                    ///< Of a micro-batch.
  std::size_t micro_batches_per_round = 0;  ///< M_R
  std::size_t rounds = 0;                   ///< R
};

}  // namespace roundpipe
