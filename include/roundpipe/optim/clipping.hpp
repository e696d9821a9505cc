// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The norm of gradients, the same bits however the work is split, and the factor that
/// clips it.

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

namespace roundpipe {

/// Elements whose squares are summed in one go. A gradient's blocks begin at its first element, so
/// work may be split at multiples of this, and nowhere else.
inline constexpr std::size_t norm_block_size = 4096;

/// How many blocks \p elements elements make.
[[nodiscard]] constexpr std::size_t norm_blocks(std::size_t elements) noexcept {
  return elements / norm_block_size + (elements % norm_block_size != 0 ? 1 : 0);
}

namespace detail {

/// Sums in eight lanes, each in order: lane l takes elements l, l + 8, l + 16, ... A float's square
/// is exact in double, so that it does not matter whether the compiler fuses multiplication and
/// addition.
struct SquareSums {
  static constexpr std::size_t lanes = 8;
  HostSpan<float const> block;
  double* sums;  ///< One a lane.

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

[[nodiscard]] inline double sum_of_block_squares(HostSpan<float const> block) noexcept {
  std::array<double, SquareSums::lanes> sums;
  run_simd(SquareSums{block, sums.data()});
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace detail

/// Writes to \p sums the sum of squares of each block of \p gradient, of whatever type. Parts of a
/// gradient that begin at multiples of \ref norm_block_size may be summed at once by several
/// threads, each to its own part of the sums.
/// \throws Error (invalid_argument) unless there are \ref norm_blocks sums.
inline void sum_squares_by_block(HostArray const& gradient, HostSpan<double> sums) {
  require(sums.size() == norm_blocks(gradient.size),
          Errc::invalid_argument,
          "a gradient has one sum of squares for each norm block");
  std::array<float, norm_block_size> block;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    auto const first = i * norm_block_size;
    auto const part = gradient.part(first, std::min(first + norm_block_size, gradient.size));
    HostSpan<float> const values(block.data(), part.size);
    widen(part.bytes(), part.dtype, values, false);
    sums[i] = detail::sum_of_block_squares(values);
  }
}

/// The sum of \p values, one after another.
[[nodiscard]] inline double sum_in_order(HostSpan<double const> values) noexcept {
  double sum = 0;
  for (auto const value : values) {
    sum += value;
  }
  return sum;
}

/// The sum of squares of \p gradients: what \ref sum_squares_by_block and \ref sum_in_order make of
/// it, bit by bit. NaN or infinite when an element is.
[[nodiscard]] inline double sum_of_squares(HostSpan<float const> gradients) noexcept {
  double sum = 0;
  for (std::size_t first = 0; first < gradients.size(); first += norm_block_size) {
    sum += detail::sum_of_block_squares(
        gradients.subspan(first, std::min(norm_block_size, gradients.size() - first)));
  }
  return sum;
}

/// What gradients of norm \p norm (all of them together) are multiplied with so that it is at most
/// \p max_norm: 1, or exactly \p max_norm / \p norm (Pascanu et al. 2013, algorithm 1). Gradients
/// within the limit keep their bits. An infinite \p max_norm clips nothing.
///
/// \returns NaN for a norm that is NaN or infinite: there is no such factor. Whoever sees it must
/// not update; `Pipeline` throws Errc::not_finite.
/// \throws Error (invalid_argument) when \p norm is negative or \p max_norm is not positive.
[[nodiscard]] inline double clip_factor(double norm, double max_norm) {
  require(!(norm < 0), Errc::invalid_argument, "a norm is not negative");
  require(max_norm > 0, Errc::invalid_argument, "the largest norm to be allowed is positive");
  if (!std::isfinite(norm)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return norm <= max_norm ? 1 : max_norm / norm;
}

}  // namespace roundpipe
