// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The norm of gradients, the same bits however the work is split, and the factor that
/// clips it.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>

namespace roundpipe {

/// Elements whose squares are summed in one go. A gradient's blocks begin at its first element, so
/// work may be split at multiples of this, and nowhere else.
inline constexpr std::size_t norm_block_size = 4096;

/// How many blocks \p elements elements make.
[[nodiscard]] constexpr std::size_t norm_blocks(std::size_t elements) noexcept {
  return elements / norm_block_size + (elements % norm_block_size != 0 ? 1 : 0);
}

/// Writes to \p sums the sum of squares of each block of \p gradient, of whatever type. Parts of a
/// gradient that begin at multiples of \ref norm_block_size may be summed at once by several
/// threads, each to its own part of the sums.
/// \throws Error (invalid_argument) unless there are \ref norm_blocks sums.
void sum_squares_by_block(HostArray const& gradient, HostSpan<double> sums);

/// The sum of \p values, one after another.
[[nodiscard]] double sum_in_order(HostSpan<double const> values) noexcept;

/// The sum of squares of \p gradients: what \ref sum_squares_by_block and \ref sum_in_order make of
/// it, bit by bit. NaN or infinite when an element is.
[[nodiscard]] double sum_of_squares(HostSpan<float const> gradients) noexcept;

/// What gradients of norm \p norm (all of them together) are multiplied with so that it is at most
/// \p max_norm: 1, or exactly \p max_norm / \p norm (Pascanu et al. 2013, algorithm 1). Gradients
/// within the limit keep their bits. An infinite \p max_norm clips nothing.
///
/// \returns NaN for a norm that is NaN or infinite: there is no such factor. Whoever sees it must
/// not update; `Pipeline` throws Errc::not_finite.
/// \throws Error (invalid_argument) when \p norm is negative or \p max_norm is not positive.
[[nodiscard]] double clip_factor(double norm, double max_norm);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/clipping.ipp>
#endif
