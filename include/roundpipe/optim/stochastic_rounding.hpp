// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Rounds fp32 to bf16 up or down at random so that the mean is the value: small updates of
/// bf16 weights are not lost.
/// A value between two neighbouring bf16 numbers becomes either one. The probabilities follow from
/// its distances to them (in steps of 2^-16 of the gap: exact). The random bits of an element are a
/// function of a key, the number of the array and the index of the element in the whole array, so
/// that cuts and threads do not matter. Values that bf16 can hold keep their bits, including
/// infinity; NaN stays NaN. Magnitudes beyond the largest finite bf16 number are rounded to
/// nearest: those up to 2^128 - 2^119 (exclusive) stay finite, and no value becomes infinite by
/// chance.

#include <roundpipe/config.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

namespace detail {

/// The source of the random bits of 2^32 consecutive elements.
struct RoundingStream {
  std::uint32_t first_key = 0;
  std::uint32_t second_key = 0;

  RoundingStream() noexcept = default;

  /// The stream for the elements of array \p array_index around \p index.
  RoundingStream(RandomKey const& rounding, std::size_t array_index, std::uint64_t index) noexcept;
};

/// Rounds to bf16: into \p to as bf16, or into \p in_place as float. Element 0 has the index \p
/// first, and all indices are below 2^32.
template <bool InPlace, bool Streams>
struct StochasticNarrow {
  float const* from;
  std::uint16_t* to;
  float* in_place;
  RoundingStream stream;
  std::uint32_t first;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    using Words = typename S::Words;
    typename S::Floats values;
    typename S::Halves rounded;
    S::load(values, from + i, count);
    // Two multiplications and shifts hash an index: Wellons's "lowbias32" (hash-prospector, 2018)
    // without its last shift, which would not change the upper half used here. The keys make the
    // streams of two arrays more than permutations of each other.
    Words x;
    S::count_up(x);
    x = x + (first + static_cast<std::uint32_t>(i) + stream.first_key);
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) + stream.second_key;
    Words noise = (x * 0x846ca68bU) >> 16;

    auto const bits = reinterpret_cast<Words>(values);
    auto const top = reinterpret_cast<typename S::Ints>((bits << 1) >> 17) == 0x7f7f;
    S::choose(noise, top, Words{} + 0x8000U, noise);
    S::to_bf16(rounded, bits, noise);
    if constexpr (InPlace) {
      S::from_bf16(values, rounded);
      S::store(in_place + i, values, count);
    } else if (Streams && count == S::lanes) {
      S::stream(to + i, rounded);
    } else {
      S::store(to + i, rounded, count);
    }
  }
};

}  // namespace detail

/// Rounds \p values in place to bf16 numbers, with the random bits that \ref update_pass draws for
/// the array of this number: 0 is the weights, 1 and up are the states. \p first_element is the
/// index of the first value in its whole array.
void round_stochastically(HostSpan<float> values,
                          RandomKey const& rounding,
                          std::size_t array_index,
                          std::size_t first_element = 0);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/stochastic_rounding.ipp>
#endif
