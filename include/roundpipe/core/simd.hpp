// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Element-wise loops in vector registers, compiled for each \ref roundpipe::SimdLevel and
/// selected at run time. The level and the compiler's flags do not change the results.
///
/// A kernel is a struct of pointers and constants with a template over the vector width. The
/// template is `gnu::always_inline`, so that its code takes on the target of the calling function.
/// Vectors are passed by reference: passed by value, the vector size would change the ABI.
///
/// The bits are the same everywhere, except with -ffast-math, because
///   - products pass through \ref Simd::rounded before an addition, so that no compiler contracts
///     them to fused multiply-adds (GCC does with -march=native);
///   - the tail of an array is padded and uses the same instructions as the whole vectors;
///   - division, square root and conversions are correctly rounded at every width.

#include <roundpipe/core/simd_level.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#  include <emmintrin.h>
#endif

namespace roundpipe::detail {

/// Vectors of \p Lanes elements. Each width is spelled out because some compilers reject a
/// dependent vector size.
template <std::size_t Lanes>
struct SimdVectors;

template <>
struct SimdVectors<4> {
  typedef float Floats __attribute__((vector_size(16)));
  typedef std::int32_t Ints __attribute__((vector_size(16)));
  typedef std::uint32_t Words __attribute__((vector_size(16)));
  typedef std::uint16_t Halves __attribute__((vector_size(8)));
  typedef float FewFloats __attribute__((vector_size(8)));  // as many as Doubles has
  typedef double Doubles __attribute__((vector_size(16)));
};

template <>
struct SimdVectors<8> {
  typedef float Floats __attribute__((vector_size(32)));
  typedef std::int32_t Ints __attribute__((vector_size(32)));
  typedef std::uint32_t Words __attribute__((vector_size(32)));
  typedef std::uint16_t Halves __attribute__((vector_size(16)));
  typedef float FewFloats __attribute__((vector_size(16)));
  typedef double Doubles __attribute__((vector_size(32)));
};

template <>
struct SimdVectors<16> {
  typedef float Floats __attribute__((vector_size(64)));
  typedef std::int32_t Ints __attribute__((vector_size(64)));
  typedef std::uint32_t Words __attribute__((vector_size(64)));
  typedef std::uint16_t Halves __attribute__((vector_size(32)));
  typedef float FewFloats __attribute__((vector_size(32)));
  typedef double Doubles __attribute__((vector_size(64)));
};

/// Operations on vectors of \p Lanes elements.
template <std::size_t Lanes>
struct Simd : SimdVectors<Lanes> {
  using typename SimdVectors<Lanes>::Floats;
  using typename SimdVectors<Lanes>::Ints;
  using typename SimdVectors<Lanes>::Words;
  using typename SimdVectors<Lanes>::Halves;
  static constexpr std::size_t lanes = Lanes;

  /// The first \p count elements at \p from, padded with zeros. \p from may be unaligned.
  template <class Vector, class T>
  [[gnu::always_inline]] static void load(Vector& to, T const* from, std::size_t count) noexcept {
    static_assert(sizeof(Vector) == Lanes * sizeof(T));
    if (count == Lanes) {
      std::memcpy(&to, from, sizeof(Vector));
    } else {
      to = Vector{};
      std::memcpy(&to, from, count * sizeof(T));
    }
  }

  /// Writes the first \p count elements to \p to, which may be unaligned.
  template <class Vector, class T>
  [[gnu::always_inline]] static void store(T* to, Vector const& from, std::size_t count) noexcept {
    static_assert(sizeof(Vector) == Lanes * sizeof(T));
    if (count == Lanes) {
      std::memcpy(to, &from, sizeof(Vector));
    } else {
      std::memcpy(to, &from, count * sizeof(T));
    }
  }

  /// Writes all elements past the caches. \p to is aligned to the vector size. Other threads may
  /// see the values late, until \ref stream_fence.
  template <class Vector, class T>
  [[gnu::always_inline]] static void stream(T* to, Vector const& from) noexcept {
    static_assert(sizeof(Vector) == Lanes * sizeof(T));
#if defined(__x86_64__)
    if constexpr (sizeof(Vector) == 8) {
      long long word = 0;
      std::memcpy(&word, &from, sizeof word);
      _mm_stream_si64(reinterpret_cast<long long*>(to), word);
    } else if constexpr (Lanes == 4) {
      asm volatile("movntps %1, %0" : "=m"(*reinterpret_cast<Vector*>(to)) : "x"(from));
    } else {
      asm volatile("vmovntps %1, %0" : "=m"(*reinterpret_cast<Vector*>(to)) : "v"(from));
    }
#else
    std::memcpy(to, &from, sizeof(Vector));
#endif
  }

  /// Prefetches the cache line 1 KiB after element \p i of \p array, once for each line: an update
  /// walks through more arrays than the CPU's own prefetchers follow. Prefetching a line that does
  /// not exist does nothing.
  template <class T>
  [[gnu::always_inline]] static void prefetch(T const* array, std::size_t i) noexcept {
    if (i * sizeof(T) % 64 == 0) {
      __builtin_prefetch(reinterpret_cast<char const*>(array) + i * sizeof(T) + 1024);
    }
  }

  /// Hides the multiplication from the compiler, so that \p product stays rounded.
  [[gnu::always_inline]] static void rounded(Floats& product) noexcept {
#if defined(__SSE2__)
    asm("" : "+v"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#else
    asm("" : "+m"(product));
#endif
  }

  /// Replaces every element by its square root, correctly rounded.
  [[gnu::always_inline]] static void square_roots(Floats& v) noexcept {
#if defined(__SSE2__)  // std::sqrt sets errno by default and is then not vectorized
    if constexpr (Lanes == 4) {
      v = _mm_sqrt_ps(v);
    } else {
      asm("vsqrtps %1, %0" : "=v"(v) : "v"(v));
    }
#else
    for (std::size_t i = 0; i < Lanes; ++i) {
      v[i] = std::sqrt(v[i]);
    }
#endif
  }

  /// Words 0, 1, 2, ...
  [[gnu::always_inline]] static void count_up(Words& to) noexcept {
    static constexpr std::array<std::uint32_t, 16> numbers{
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    std::memcpy(&to, numbers.data(), sizeof to);
  }

  /// \p then where \p mask has ones, \p other elsewhere.
  [[gnu::always_inline]] static void choose(Words& to,
                                            Ints const& mask,
                                            Words const& then,
                                            Words const& other) noexcept {
    to = (reinterpret_cast<Words const&>(mask) & then) |
         (~reinterpret_cast<Words const&>(mask) & other);
  }

  /// Widens bf16, exactly.
  [[gnu::always_inline]] static void from_bf16(Floats& to, Halves const& from) noexcept {
    auto const bits = __builtin_convertvector(from, Words) << 16;
    to = reinterpret_cast<Floats>(bits);
  }

  /// Narrows to bf16 as \ref roundpipe::BFloat16 does: to nearest, ties to even; NaN stays NaN.
  [[gnu::always_inline]] static void to_bf16(Halves& to, Floats const& from) noexcept {
    auto const bits = reinterpret_cast<Words>(from);
    Words const noise = ((bits >> 16) & 1U) + 0x7fffU;
    to_bf16(to, bits, noise);
  }

  /// Narrows to bf16 after adding \p noise, below 2^16, to the 16 bits that are cut off; NaN stays
  /// NaN.
  [[gnu::always_inline]] static void to_bf16(Halves& to,
                                             Words const& bits,
                                             Words const& noise) noexcept {
    Ints const is_nan = reinterpret_cast<Ints>(bits & 0x7fffffffU) > 0x7f800000;
    Words result;
    choose(result, is_nan, (bits >> 16) | 0x40U, (bits + noise) >> 16);
    to = __builtin_convertvector(result, Halves);
  }

  /// Widens IEEE binary16, exactly; a NaN becomes quiet.
  [[gnu::always_inline]] static void from_f16(Floats& to, Halves const& from) noexcept {
    if constexpr (Lanes == 4) {
      auto const bits = __builtin_convertvector(from, Words);
      Words const magnitude = (bits & 0x7fffU) << 13;
      auto const wide = reinterpret_cast<Ints>(magnitude);
      Words result = magnitude + ((127U - 15U) << 23);
      choose(result, wide >= (0x1f << 23), magnitude | (0xffU << 23), result);
      choose(result, wide > (0x1f << 23), result | (1U << 22), result);
      Words const above = magnitude + (113U << 23);  // a subnormal m is (2^-14 + m) - 2^-14
      Floats const subnormal = reinterpret_cast<Floats>(above) - 0x1p-14F;
      choose(result, wide < (1 << 23), reinterpret_cast<Words>(subnormal), result);
      Words const with_sign = result | (bits & 0x8000U) << 16;
      to = reinterpret_cast<Floats>(with_sign);
    } else {
      asm("vcvtph2ps %1, %0" : "=v"(to) : "v"(from));
    }
  }

  /// Narrows to IEEE binary16, to nearest, ties to even: values beyond the range become infinite,
  /// NaN a quiet NaN.
  [[gnu::always_inline]] static void to_f16(Halves& to, Floats const& from) noexcept {
    if constexpr (Lanes == 4) {
      auto const bits = reinterpret_cast<Words>(from);
      Words const magnitude = bits & 0x7fffffffU;
      auto const wide = reinterpret_cast<Ints>(magnitude);
      Words result = (magnitude - ((127U - 15U) << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
      // Adding 1/2, whose last place is 2^-24, rounds a small magnitude as a subnormal.
      Floats const small = reinterpret_cast<Floats>(magnitude) + 0.5F;
      choose(result, wide < (113 << 23), reinterpret_cast<Words>(small) - 0x3f000000U, result);
      choose(result, wide >= (143 << 23), Words{} + 0x7c00U, result);
      choose(result, wide > (255 << 23), 0x7e00U | ((magnitude >> 13) & 0x3ffU), result);
      Words const with_sign = result | ((bits >> 16) & 0x8000U);
      to = __builtin_convertvector(with_sign, Halves);
    } else {
      asm("vcvtps2ph $0, %1, %0" : "=v"(to) : "v"(from));
    }
  }
};

/// Makes all streamed writes visible to other threads before any later write.
inline void stream_fence() noexcept {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
template <class Kernel>
[[gnu::target("avx2,f16c"), gnu::noinline]] void run_avx2(Kernel const& kernel) {
  kernel.template run<Simd<8>>();
}
template <class Kernel>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq"), gnu::noinline]] void run_avx512(
    Kernel const& kernel) {
  kernel.template run<Simd<16>>();
}
#endif

/// Calls `kernel.run<Simd<...>>()`, compiled for the current level.
template <class Kernel>
void run_simd(Kernel const& kernel) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  switch (simd_level()) {
    case SimdLevel::avx512:
      return run_avx512(kernel);
    case SimdLevel::avx2:
      return run_avx2(kernel);
    case SimdLevel::portable:
      break;
  }
#endif
  kernel.template run<Simd<4>>();
}

/// Calls `body.at<Simd<...>>(i, count)` for the elements [i, i + count) until all \p size elements
/// are done.
template <class Body>
struct ElementLoop {
  std::size_t size;
  Body body;

  template <class S>
  [[gnu::always_inline]] void run() const {
    auto const local = body;  // keeps its constants in registers: no store can change them
    std::size_t i = 0;
    for (; i + S::lanes <= size; i += S::lanes) {
      local.template at<S>(i, S::lanes);
    }
    if (i < size) {
      local.template at<S>(i, size - i);
    }
  }
};

/// Applies \p body to \p size elements at the current level.
template <class Body>
void for_each_element(std::size_t size, Body const& body) {
  run_simd(ElementLoop<Body>{size, body});
}

}  // namespace roundpipe::detail
