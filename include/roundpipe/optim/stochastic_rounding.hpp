// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Rounds fp32 to bf16 up or down at random so that the mean is the value: small updates of
/// bf16 weights are not lost.
/// A value between two neighbouring bf16 numbers becomes either one. The probabilities follow from
/// its distances to them (in steps of 2^-16 of the gap: exact). The random bits of an element are a
/// function of a key, the number of the array and the index of the element in the whole array, so
/// that cuts, threads and vector widths do not matter. Values that bf16 can hold keep their bits,
/// including infinity; NaN stays NaN. Magnitudes beyond the largest finite bf16 number are rounded
/// to nearest: those up to 2^128 - 2^119 (exclusive) stay finite, and no value becomes infinite by
/// chance.
///
/// How random must the bits be? Rounding errors must vanish on average, and must not add up over
/// the elements of a product, the arrays of an update or its steps. So each 16 bits must be
/// uniform, and two of them uncorrelated. Nobody tries to guess them.
///   - Uniform: for each array, the words of 2^32 pairs of elements are a permutation of all words.
///   - Steps, parameters and spans of 2^33 elements: Philox (\ref random_block) makes two new keys.
///   - Elements: a hash of keys and pair number. The sequence i W (W is 2^32 divided by the golden
///     ratio; Weyl 1916) and the first round of "lowbias32" (Wellons, hash-prospector, 2018). One
///     word serves both elements of a pair.
///   - Arrays: array k multiplies the hash by A^(k+1). So the arrays are successive numbers of a
///     linear congruential generator; A is Steele's and Vigna's 0xadb4a92d ("Computationally easy,
///     spectrally good multipliers", Software: Practice and Experience 52, 2022). The last step
///     folds the upper half of the product, the better one, into the lower.
/// A unit test compares draws of elements up to 2^18 apart, of different arrays and of successive
/// steps; it would find a correlation of 1 %.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/simd_pairs.hpp>
#include <roundpipe/core/span.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

namespace detail {

/// What array \p array_index multiplies hashes by.
[[nodiscard]] constexpr std::uint32_t rounding_multiplier(std::size_t array_index) noexcept {
  std::uint32_t result = 0xadb4a92dU;
  for (std::size_t k = 0; k < array_index; ++k) {
    result *= 0xadb4a92dU;
  }
  return result;
}

/// The source of the random bits of 2^33 consecutive elements: 16 for each element and array.
struct RoundingStream {
  std::uint32_t first_key = 0;
  std::uint32_t second_key = 0;

  /// The stream for the elements around \p index.
  RoundingStream(RandomKey const& rounding, std::uint64_t index) noexcept;

  /// The hashes of pairs \p pair, \p pair + 1, ...
  template <class S>
  [[gnu::always_inline]] void hash(typename S::Words& to, std::uint32_t pair) const noexcept {
    constexpr std::uint32_t weyl = 0x9e3779b9U;
    typename S::Words x;
    S::count_up(x);
    x = x * weyl + (pair * weyl + first_key);
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    to = (x ^ (x >> 15)) + second_key;
  }

  /// The bits of the even and the odd elements of pairs in the array with \p multiplier.
  template <class S>
  [[gnu::always_inline]] static void draw(typename S::Words& even,
                                          typename S::Words& odd,
                                          typename S::Words const& hashes,
                                          std::uint32_t multiplier) noexcept {
    typename S::Words const x = hashes * multiplier;
    odd = x >> 16;
    even = (x ^ odd) & 0xffffU;
  }
};

/// Rounds pairs of floats to bf16.
template <class S>
struct RoundPairs {
  using Floats = typename S::Floats;
  using Ints = typename S::Ints;
  using Words = typename S::Words;

  /// Rounds all values right.
  [[gnu::always_inline]] static void all(Words& to,
                                         Floats const& even,
                                         Floats const& odd,
                                         Words const& even_bits,
                                         Words const& odd_bits) noexcept {
    Words low;
    Words high;
    one(low, even, even_bits);
    one(high, odd, odd_bits);
    to = (low >> 16) | (high & 0xffff0000U);
  }

  /// Rounds values right that are below the largest finite bf16 number. \ref add_extremes finds the
  /// other ones in the result, except NaNs whose lower 16 bits are not zeros: arithmetic with bf16
  /// numbers makes none.
  [[gnu::always_inline]] static void moderate(Words& to,
                                              Floats const& even,
                                              Floats const& odd,
                                              Words const& even_bits,
                                              Words const& odd_bits) noexcept {
    Words const low = reinterpret_cast<Words>(even) + even_bits;
    Words const high = reinterpret_cast<Words>(odd) + odd_bits;
    to = (low >> 16) | (high & 0xffff0000U);
  }

  /// Sets bit 15 or 31 of \p flags where the even or odd element of \p pairs has the largest finite
  /// magnitude, is infinite or NaN.
  [[gnu::always_inline]] static void add_extremes(Words& flags, Words const& pairs) noexcept {
    // 0x7f7f + 0x81 reaches the sign bit, and 0xff7f + 0x81 passes it: other signs stay.
    flags = flags | (pairs ^ (pairs + 0x00810081U));
  }

  /// Sets bit 31 of \p flags where \p values are NaN: \ref moderate spoils NaNs that bf16 cannot
  /// hold.
  [[gnu::always_inline]] static void add_nans(Words& flags, Floats const& values) noexcept {
    Words const size = reinterpret_cast<Words>(values) & 0x7fffffffU;
    flags = flags | ((size + 0x7fffffU) & 0x80000000U);
  }

 private:
  /// Adds \p random so that the upper half is right.
  [[gnu::always_inline]] static void one(Words& to,
                                         Floats const& value,
                                         Words const& random) noexcept {
    auto const bits = reinterpret_cast<Words>(value);
    Words const size = bits & 0x7fffffffU;
    Ints const extreme = reinterpret_cast<Ints>(size) >= 0x7f7f0000;
    Ints const is_nan = reinterpret_cast<Ints>(size) > 0x7f800000;
    Words noise;
    S::choose(noise, extreme, Words{} + 0x8000U, random);
    S::choose(to, is_nan, bits | 0x400000U, bits + noise);
  }
};

/// Rounds floats to bf16. Element 0 has the index \p first.
struct StochasticNarrow {
  float const* from;
  std::uint16_t* to;
  bool streams;  ///< Past the caches: \p to is aligned to 64 bytes, and \p first is even.
  RoundingStream stream;
  std::uint32_t multiplier;
  std::uint64_t first;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i,
                                 std::size_t skip,
                                 std::size_t count) const noexcept {
    using Pairs = SimdPairs<S>;
    typename S::Floats even;
    typename S::Floats odd;
    typename S::Words words;
    typename S::Words even_bits;
    typename S::Words odd_bits;
    Pairs::load(even, odd, from + i, skip, count);
    stream.hash<S>(words, static_cast<std::uint32_t>((first + i) >> 1U));
    RoundingStream::draw<S>(even_bits, odd_bits, words, multiplier);
    RoundPairs<S>::all(words, even, odd, even_bits, odd_bits);
    if (streams && count == Pairs::elements) {
      S::stream(reinterpret_cast<std::uint32_t*>(to + i), words);
    } else {
      Pairs::store(to + i, words, skip, count);
    }
  }
};

/// Adds bf16 numbers to bf16 sums. Element 0 has the index \p first.
struct StochasticAdd {
  std::uint16_t const* from;
  std::uint16_t* sums;
  RoundingStream stream;
  std::uint64_t first;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i,
                                 std::size_t skip,
                                 std::size_t count) const noexcept {
    using Pairs = SimdPairs<S>;
    typename S::Floats even[2];
    typename S::Floats odd[2];
    typename S::Words words[2];
    typename S::Words hashes;
    typename S::Words even_bits;
    typename S::Words odd_bits;
    typename S::Words extremes{};
    S::prefetch(sums, i);
    S::prefetch(from, i);
    Pairs::load(words[0], sums + i, skip, count);
    Pairs::load(words[1], from + i, skip, count);
    Pairs::widen(even[0], odd[0], words[0]);
    Pairs::widen(even[1], odd[1], words[1]);
    even[0] = even[0] + even[1];
    odd[0] = odd[0] + odd[1];
    stream.hash<S>(hashes, static_cast<std::uint32_t>((first + i) >> 1U));
    RoundingStream::draw<S>(even_bits, odd_bits, hashes, rounding_multiplier(0));
    RoundPairs<S>::moderate(words[0], even[0], odd[0], even_bits, odd_bits);
    RoundPairs<S>::add_extremes(extremes, words[0]);
    if (Pairs::any_sign(extremes)) [[unlikely]] {
      RoundPairs<S>::all(words[0], even[0], odd[0], even_bits, odd_bits);
    }
    Pairs::store(sums + i, words[0], skip, count);
  }
};

/// Whether pairs of elements may go to \p to past the caches when the first one has index \p first.
[[nodiscard]] inline bool may_stream(void const* to, std::uint64_t first) noexcept {
  return reinterpret_cast<std::uintptr_t>(to) % 64 == 0 && first % 2 == 0;
}

/// Rounds \p values of array \p array_index to bf16 elements at \p to, past the caches if \p
/// streams and if that is possible. \p first is the index of the first value.
void narrow_stochastically(HostSpan<float const> values,
                           std::byte* to,
                           bool streams,
                           RoundingStream const& stream,
                           std::size_t array_index,
                           std::uint64_t first);

/// Calls `f(stream, begin, end)` for each part [begin, end) of \p size elements, from index \p
/// first_element on, that has its own \ref RoundingStream.
template <class F>
void for_each_stream(RandomKey const& rounding,
                     std::uint64_t first_element,
                     std::size_t size,
                     F const& f) {
  constexpr auto span = std::uint64_t{1} << 33U;
  for (std::size_t begin = 0; begin < size;) {
    auto const index = first_element + begin;
    auto const there = span - index % span;
    auto const end = begin + static_cast<std::size_t>(std::min<std::uint64_t>(size - begin, there));
    f(RoundingStream(rounding, index), begin, end);
    begin = end;
  }
}

}  // namespace detail

/// Rounds \p values in place to bf16 numbers, with the random bits that \ref update_pass draws for
/// the array of this number: 0 is the weights, 1 and up are the states. \p first_element is the
/// index of the first value in its whole array.
void round_stochastically(HostSpan<float> values,
                          RandomKey const& rounding,
                          std::size_t array_index,
                          std::size_t first_element = 0);

/// Adds the bf16 numbers of \p addends to as many of \p sums, and rounds each sum once: with the
/// bits of \ref round_stochastically for array 0.
/// \throws Error (invalid_argument) when the two are not of one size.
void add_stochastically(HostSpan<std::byte const> addends,
                        HostBytes sums,
                        RandomKey const& rounding,
                        std::size_t first_element = 0);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/optim/impl/stochastic_rounding.ipp>
#endif
