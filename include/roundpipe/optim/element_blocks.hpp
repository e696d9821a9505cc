// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Element-wise loops whose results do not depend on how an array is cut into parts.
///
/// A plain loop becomes a vector body and a scalar rest, and a compiler that contracts a b + c to a
/// fused multiply-add (GCC does, with -march=native) need not do so alike in both: an element's
/// bits could depend on its place in the part. Here *every* element goes through the same loop of
/// constant length over local, aligned arrays, which has no rest; short parts are padded.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#ifdef __SSE2__
#  include <xmmintrin.h>
#endif

namespace roundpipe::detail {

inline constexpr std::size_t element_block_size = 64;

/// A few consecutive elements.
struct alignas(64) ElementBlock {
  float values[element_block_size] = {};

  [[nodiscard]] float& operator[](std::size_t i) noexcept { return values[i]; }
  [[nodiscard]] float operator[](std::size_t i) const noexcept { return values[i]; }
};

/// Copies \p count elements at \p from to \p to.
inline void copy_elements(float const* from, std::size_t count, float* to) noexcept {
  if (count == element_block_size) {  // inline, where copy_n would be a call
    for (std::size_t i = 0; i < element_block_size; ++i) {
      to[i] = from[i];
    }
  } else {
    std::copy_n(from, count, to);
  }
}

/// Replaces every element by its square root, correctly rounded.
inline void square_roots(ElementBlock& block) noexcept {
#ifdef __SSE2__  // std::sqrt sets errno, unless compiled otherwise, and so is not vectorized
  for (std::size_t i = 0; i < element_block_size; i += 4) {
    _mm_store_ps(&block[i], _mm_sqrt_ps(_mm_load_ps(&block[i])));
  }
#else
  for (auto& value : block.values) {
    value = std::sqrt(value);
  }
#endif
}

/// Calls \p f(gradient block, blocks) for all elements, where `blocks[k]` holds those of
/// \p arrays[k] before the call and is written back after it.
/// \throws Error (invalid_argument) when the arrays differ in size.
template <std::size_t K, class F>
void for_each_block(HostSpan<float const> gradients,
                    std::array<HostSpan<float>, K> const& arrays,
                    F const& f) {
  for (auto const& array : arrays) {
    require(array.size() == gradients.size(),
            Errc::invalid_argument,
            "an update's weights, gradients and states are equally many");
  }
  ElementBlock gradient;
  std::array<ElementBlock, K> blocks;
  for (std::size_t first = 0; first < gradients.size(); first += element_block_size) {
    auto const count = std::min(element_block_size, gradients.size() - first);
    copy_elements(gradients.data() + first, count, gradient.values);
    for (std::size_t k = 0; k < K; ++k) {
      copy_elements(arrays[k].data() + first, count, blocks[k].values);
    }
    f(static_cast<ElementBlock const&>(gradient), blocks);
    for (std::size_t k = 0; k < K; ++k) {
      copy_elements(blocks[k].values, count, arrays[k].data() + first);
    }
  }
}

}  // namespace roundpipe::detail
