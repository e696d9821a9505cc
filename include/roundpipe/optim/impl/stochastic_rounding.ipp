// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/random.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/stochastic_rounding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE RoundingStream::RoundingStream(RandomKey const& rounding,
                                                std::size_t array_index,
                                                std::uint64_t index) noexcept {
  auto const words = random_block(rounding, std::uint64_t{array_index} << 32 | index >> 32);
  first_key = words[0];
  second_key = words[1];
}

/// Calls `f(stream, first, begin, end)` for each part [begin, end) of \p size elements, from index
/// \p first_element on, that has its own \ref RoundingStream.
template <class F>
void for_each_stream(RandomKey const& rounding,
                     std::size_t array_index,
                     std::uint64_t first_element,
                     std::size_t size,
                     F const& f) {
  for (std::size_t begin = 0; begin < size;) {
    auto const index = first_element + begin;
    auto const first = static_cast<std::uint32_t>(index);
    auto const there = (std::uint64_t{1} << 32) - first;
    auto const end = begin + static_cast<std::size_t>(std::min<std::uint64_t>(size - begin, there));
    f(RoundingStream(rounding, array_index, index), first, begin, end);
    begin = end;
  }
}

}  // namespace detail

ROUNDPIPE_INLINE void round_stochastically(HostSpan<float> values,
                                           RandomKey const& rounding,
                                           std::size_t array_index,
                                           std::size_t first_element) {
  detail::for_each_stream(
      rounding,
      array_index,
      first_element,
      values.size(),
      [&](detail::RoundingStream const& stream,
          std::uint32_t first,
          std::size_t begin,
          std::size_t end) {
        auto* const part = values.data() + begin;
        detail::for_each_element(
            end - begin, detail::StochasticNarrow<true, false>{part, nullptr, part, stream, first});
      });
}

}  // namespace roundpipe
