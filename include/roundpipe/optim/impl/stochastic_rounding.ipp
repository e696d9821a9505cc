// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/simd_pairs.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/optim/stochastic_rounding.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE RoundingStream::RoundingStream(RandomKey const& rounding,
                                                std::uint64_t index) noexcept {
  auto const words = random_block(rounding, index >> 33U);
  first_key = words[0];
  second_key = words[1];
}

ROUNDPIPE_INLINE void narrow_stochastically(HostSpan<float const> values,
                                            std::byte* to,
                                            bool streams,
                                            RoundingStream const& stream,
                                            std::size_t array_index,
                                            std::uint64_t first) {
  for_each_pair(values.size(),
                first % 2 != 0,
                StochasticNarrow{values.data(),
                                 reinterpret_cast<std::uint16_t*>(to),
                                 streams && may_stream(to, first),
                                 stream,
                                 rounding_multiplier(array_index),
                                 first});
}

}  // namespace detail

ROUNDPIPE_INLINE void round_stochastically(HostSpan<float> values,
                                           RandomKey const& rounding,
                                           std::size_t array_index,
                                           std::size_t first_element) {
  alignas(64) std::array<std::byte, 2048> rounded;
  detail::for_each_stream(
      rounding,
      first_element,
      values.size(),
      [&](detail::RoundingStream const& stream, std::size_t begin, std::size_t end) {
        for (; begin < end; begin += std::min(end - begin, rounded.size() / 2)) {
          auto const part = values.subspan(begin, std::min(end - begin, rounded.size() / 2));
          detail::narrow_stochastically(
              part, rounded.data(), false, stream, array_index, first_element + begin);
          widen(std::span(rounded).first(2 * part.size()), DType::bf16, part, false);
        }
      });
}

ROUNDPIPE_INLINE void add_stochastically(HostSpan<std::byte const> addends,
                                         HostBytes sums,
                                         RandomKey const& rounding,
                                         std::size_t first_element) {
  require(addends.size() == sums.size(),
          Errc::invalid_argument,
          "add_stochastically() adds as many numbers as there are sums");
  auto const* const from = reinterpret_cast<std::uint16_t const*>(addends.data());
  auto* const to = reinterpret_cast<std::uint16_t*>(sums.data());
  detail::for_each_stream(
      rounding,
      first_element,
      sums.size() / size_of(DType::bf16),
      [&](detail::RoundingStream const& stream, std::size_t begin, std::size_t end) {
        auto const first = first_element + begin;
        detail::for_each_pair(end - begin,
                              first % 2 != 0,
                              detail::StochasticAdd{from + begin, to + begin, stream, first});
      });
}

}  // namespace roundpipe
