// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/clipping.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

namespace roundpipe {

namespace detail {

/// Sums in eight lanes, each in order: lane l takes elements l, l + 8, l + 16, ... The square of a
/// float is exact in double, so fused multiply-adds give the same result.
struct SquareSums {
  static constexpr std::size_t lanes = 8;
  HostSpan<float const> block;
  double* sums;  ///< One for each lane.

  template <class S>
  [[gnu::always_inline]] void run() const noexcept {
    using Doubles = typename S::Doubles;
    constexpr auto wide = sizeof(Doubles) / sizeof(double);
    Doubles totals[lanes / wide] = {};
    auto const* const values = block.data();
    auto const size = block.size();
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      for (std::size_t k = 0; k < lanes / wide; ++k) {
        typename S::FewFloats few;
        std::memcpy(&few, values + i + k * wide, sizeof few);
        Doubles const g = __builtin_convertvector(few, Doubles);
        totals[k] = totals[k] + g * g;
      }
    }
    std::memcpy(sums, totals, sizeof totals);
    for (std::size_t lane = 0; i < size; ++i, ++lane) {
      auto const g = static_cast<double>(values[i]);
      sums[lane] += g * g;
    }
  }
};

[[nodiscard]] ROUNDPIPE_INLINE double sum_of_block_squares(HostSpan<float const> block) noexcept {
  std::array<double, SquareSums::lanes> sums;
  run_simd(SquareSums{block, sums.data()});
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace detail

ROUNDPIPE_INLINE void sum_squares_by_block(HostArray const& gradient, HostSpan<double> sums) {
  require(sums.size() == norm_blocks(gradient.size),
          Errc::invalid_argument,
          "a gradient needs one sum of squares for each norm block");
  std::array<float, norm_block_size> block;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    auto const first = i * norm_block_size;
    auto const part = gradient.part(first, std::min(first + norm_block_size, gradient.size));
    HostSpan<float> const values(block.data(), part.size);
    widen(part.bytes(), part.dtype, values, false);
    sums[i] = detail::sum_of_block_squares(values);
  }
}

ROUNDPIPE_INLINE double sum_in_order(HostSpan<double const> values) noexcept {
  double sum = 0;
  for (auto const value : values) {
    sum += value;
  }
  return sum;
}

ROUNDPIPE_INLINE double sum_of_squares(HostSpan<float const> gradients) noexcept {
  double sum = 0;
  for (std::size_t first = 0; first < gradients.size(); first += norm_block_size) {
    sum += detail::sum_of_block_squares(
        gradients.subspan(first, std::min(norm_block_size, gradients.size() - first)));
  }
  return sum;
}

ROUNDPIPE_INLINE double clip_factor(double norm, double max_norm) {
  require(!(norm < 0), Errc::invalid_argument, "a norm must not be negative");
  require(max_norm > 0, Errc::invalid_argument, "the largest allowed norm must be positive");
  if (!std::isfinite(norm)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return norm <= max_norm ? 1 : max_norm / norm;
}

}  // namespace roundpipe
