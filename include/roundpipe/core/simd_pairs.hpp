// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Vectors of pairs of bf16 elements: each word of a vector holds two neighbours.
/// A shift widens the even element of a pair and a mask the odd one, at any vector width, without
/// moving elements between lanes.

#include <roundpipe/core/simd.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace roundpipe::detail {

/// Operations on the pairs of elements in a vector of \p S. A part of an array may begin with the
/// odd element of a pair or end with an even one: then \c skip is 1, or \c count is odd.
template <class S>
struct SimdPairs {
  using Floats = typename S::Floats;
  using Words = typename S::Words;
  static constexpr std::size_t elements = 2 * S::lanes;
  static_assert(std::endian::native == std::endian::little);

  /// The bf16 elements at \p from, \p count of them, from place \p skip on; zeros elsewhere. \p
  /// from may be unaligned.
  [[gnu::always_inline]] static void load(Words& to,
                                          std::uint16_t const* from,
                                          std::size_t skip,
                                          std::size_t count) noexcept {
    if (count == elements) {
      std::memcpy(&to, from, sizeof to);
    } else {
      std::array<std::uint16_t, elements> padded{};
      std::memcpy(padded.data() + skip, from, 2 * count);
      std::memcpy(&to, padded.data(), sizeof to);
    }
  }

  /// Writes \p count elements, from place \p skip on, to \p to, which may be unaligned.
  [[gnu::always_inline]] static void store(std::uint16_t* to,
                                           Words const& from,
                                           std::size_t skip,
                                           std::size_t count) noexcept {
    if (count == elements) {
      std::memcpy(to, &from, sizeof from);
    } else {
      std::array<std::uint16_t, elements> padded;
      std::memcpy(padded.data(), &from, sizeof from);
      std::memcpy(to, padded.data() + skip, 2 * count);
    }
  }

  /// Widens both elements of each pair, exactly.
  [[gnu::always_inline]] static void widen(Floats& even, Floats& odd, Words const& pairs) noexcept {
    Words const low = pairs << 16;
    Words const high = pairs & 0xffff0000U;
    even = reinterpret_cast<Floats>(low);
    odd = reinterpret_cast<Floats>(high);
  }

  /// As \ref load, from an array of floats.
  [[gnu::always_inline]] static void load(
      Floats& even, Floats& odd, float const* from, std::size_t skip, std::size_t count) noexcept {
    Floats first;
    Floats second;
    if (count == elements) {
      std::memcpy(&first, from, sizeof first);
      std::memcpy(&second, from + S::lanes, sizeof second);
    } else {
      std::array<float, elements> padded{};
      std::memcpy(padded.data() + skip, from, count * sizeof(float));
      std::memcpy(&first, padded.data(), sizeof first);
      std::memcpy(&second, padded.data() + S::lanes, sizeof second);
    }
    every_second(even, odd, first, second);
  }

  /// Whether any word of \p words has its bit 15 or 31.
  [[gnu::always_inline]] static bool any_sign(Words const& words) noexcept {
    constexpr std::uint32_t signs = 0x80008000U;
#if defined(__SSE2__)
    constexpr std::uint32_t upper_bytes = 0xaaaaaaaaU;
    if constexpr (S::lanes == 4) {
      __m128i bytes;
      std::memcpy(&bytes, &words, sizeof bytes);
      return (static_cast<std::uint32_t>(_mm_movemask_epi8(bytes)) & upper_bytes) != 0;
    } else if constexpr (S::lanes == 8) {
      std::uint32_t bytes = 0;
      asm("vpmovmskb %1, %0" : "=r"(bytes) : "x"(words));
      return (bytes & upper_bytes) != 0;
    } else {
      std::uint16_t lanes = 0;
      asm("vptestmd %1, %2, %0" : "=k"(lanes) : "v"(words), "v"(Words{} + signs));
      return lanes != 0;
    }
#else
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < S::lanes; ++i) {
      all |= words[i];
    }
    return (all & signs) != 0;
#endif
  }

 private:
  /// The even and the odd elements of two vectors. nvcc cannot read packs of indices.
  [[gnu::always_inline]] static void every_second(Floats& even,
                                                  Floats& odd,
                                                  Floats const& a,
                                                  Floats const& b) noexcept {
    if constexpr (S::lanes == 4) {
      even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
      odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
    } else if constexpr (S::lanes == 8) {
      even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
      odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
    } else {
      even =
          __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      odd =
          __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    }
  }
};

/// Calls `body.at<Simd<...>>(i, skip, count)` for the elements [i, i + count) until all \p size
/// elements are done. With \c skip 1, element i is the odd one of its pair.
template <class Body>
struct PairLoop {
  std::size_t size;
  bool begins_odd;  ///< Whether element 0 is the odd one of its pair.
  Body body;

  template <class S>
  [[gnu::always_inline]] void run() const {
    constexpr auto whole = SimdPairs<S>::elements;
    auto const local = body;  // keeps its constants in registers: no store can change them
    std::size_t const skip = begins_odd ? 1 : 0;
    auto const head = std::min(size, skip * (whole - 1));
    auto i = head;
    for (; i + whole <= size; i += whole) {
      local.template at<S>(i, 0, whole);
    }
    std::size_t const parts[2][3] = {{0, skip, head}, {i, 0, size - i}};
    for (auto const& [begin, before, count] : parts) {
      if (count > 0) {
        local.template at<S>(begin, before, count);
      }
    }
  }
};

/// Applies \p body to \p size elements in pairs, at the current level.
template <class Body>
void for_each_pair(std::size_t size, bool begins_odd, Body const& body) {
  run_simd(PairLoop<Body>{size, begins_odd, body});
}

}  // namespace roundpipe::detail
