// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Conversion between host arrays of fp32 and of a tensor's declared type.

#include <roundpipe/config.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

namespace detail {

/// Narrows fp32 to a 16-bit type. \p Streams bypasses the caches and needs \p to aligned to 64
/// bytes.
template <DType Type, bool Streams>
struct Narrow {
  float const* from;
  std::uint16_t* to;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    typename S::Floats values;
    typename S::Halves rounded;
    S::load(values, from + i, count);
    if constexpr (Type == DType::bf16) {
      S::to_bf16(rounded, values);
    } else {
      S::to_f16(rounded, values);
    }
    if (Streams && count == S::lanes) {
      S::stream(to + i, rounded);
    } else {
      S::store(to + i, rounded, count);
    }
  }
};

/// Widens a 16-bit type to fp32, and writes the values or adds them. \p Streams bypasses the caches
/// and needs \p to aligned to 64 bytes.
template <DType Type, bool Adds, bool Streams = false>
struct Widen {
  std::uint16_t const* from;
  float* to;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    S::prefetch(from, i);
    typename S::Halves halves;
    typename S::Floats values;
    S::load(halves, from + i, count);
    if constexpr (Type == DType::bf16) {
      S::from_bf16(values, halves);
    } else {
      S::from_f16(values, halves);
    }
    if constexpr (Adds) {
      typename S::Floats sums;
      S::load(sums, to + i, count);
      values = sums + values;
    }
    if (Streams && count == S::lanes) {
      S::stream(to + i, values);
    } else {
      S::store(to + i, values, count);
    }
  }
};

/// Whether \ref narrow and \ref widen support \p type.
[[nodiscard]] constexpr bool is_convertible(DType type) noexcept {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

}  // namespace detail

/// Writes \p values to \p memory as elements of \p type (f32, bf16 or f16). Rounds to nearest, ties
/// to even, as \ref BFloat16 and \ref Float16 do: values beyond the range become infinite, NaN
/// stays NaN. \p memory may be the memory of \p values for f32 only; otherwise the two must not
/// overlap.
/// \throws Error (invalid_argument) for another type or when \p memory is too small.
void narrow(HostSpan<float const> values, DType type, HostBytes memory);

/// Reads the elements of \p type (f32, bf16 or f16) in \p memory and writes them to \p sums, or
/// adds them when \p adds. \p memory and \p sums must not overlap. The conversion is exact; a
/// signalling NaN of f16 becomes quiet.
/// \throws Error (invalid_argument) for another type or when \p memory is too small.
void widen(HostSpan<std::byte const> memory, DType type, HostSpan<float> sums, bool adds);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/core/impl/convert.ipp>
#endif
