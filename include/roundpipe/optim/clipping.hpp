// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The norm of gradients, with the same bits for any split of the work, and the factor that
/// clips it.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>

namespace roundpipe {

/// The number of elements in a norm block, whose squares are summed together. The blocks of a
/// gradient begin at its first element: split work at multiples of this number only.
inline constexpr std::size_t norm_block_size = 4096;

/// The number of blocks in \p elements elements.
[[nodiscard]] constexpr std::size_t norm_blocks(std::size_t elements) noexcept {
  return elements / norm_block_size + (elements % norm_block_size != 0 ? 1 : 0);
}

/// Writes the sum of squares of each block of \p gradient, of any type, to \p sums. Several threads
/// may sum parts at once, each into its own part of the sums, if the parts begin at multiples of
/// \ref norm_block_size.
/// \throws Error (invalid_argument) unless there are \ref norm_blocks sums.
void sum_squares_by_block(HostArray const& gradient, HostSpan<double> sums);

/// The sum of \p values, in order.
[[nodiscard]] double sum_in_order(HostSpan<double const> values) noexcept;

/// The sum of squares of \p gradients, with the bits of \ref sum_squares_by_block and \ref
/// sum_in_order. NaN or infinite when an element is.
[[nodiscard]] double sum_of_squares(HostSpan<float const> gradients) noexcept;

/// The factor that brings gradients of norm \p norm (over all of them) to at most \p max_norm: 1,
/// or exactly \p max_norm / \p norm (Pascanu et al. 2013, algorithm 1). Gradients within the limit
/// keep their bits. An infinite \p max_norm clips nothing.
///
/// \returns NaN for a norm that is NaN or infinite: no such factor exists. The caller must not
/// update then; `Pipeline` throws Errc::not_finite.
/// \throws Error (invalid_argument) when \p norm is negative or \p max_norm is not positive.
[[nodiscard]] double clip_factor(double norm, double max_norm);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/clipping.ipp>
#endif
