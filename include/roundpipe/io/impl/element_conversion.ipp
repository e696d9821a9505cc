// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/element_conversion.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace roundpipe {

namespace detail {

inline constexpr std::size_t converted_at_once = 2048;

/// Memory for a few elements on their way from one floating type to another.
class ConversionWindow {
 public:
  /// The elements of \p type in \p from, at most \ref converted_at_once, as fp32. They lie in \p
  /// from itself where it holds such, else in \p place, or in this window if \p place is empty.
  [[nodiscard]] HostSpan<float const> floats(HostSpan<std::byte const> from,
                                             DType type,
                                             HostSpan<float> place) {
    auto const count = from.size() / size_of(type);
    auto const to = place.empty() ? std::span(floats_).first(count) : place;
    if (type == DType::f64) {
      for (std::size_t i = 0; i < count; ++i) {
        double value = 0;
        std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
        to[i] = static_cast<float>(value);
      }
      return to;
    }
    bool const aligned = reinterpret_cast<std::uintptr_t>(from.data()) % size_of(type) == 0;
    if (type == DType::f32 && aligned) {
      return {reinterpret_cast<float const*>(from.data()), count};
    }
    if (!aligned) {
      std::memcpy(bytes_.data(), from.data(), from.size());
      from = std::span(bytes_).first(from.size());
    }
    widen(from, type, to, false);
    return to;
  }

 private:
  alignas(64) std::array<float, converted_at_once> floats_;
  alignas(64) std::array<std::byte, converted_at_once * sizeof(float)> bytes_;
};

/// Copies fp32 past the caches. \p to is aligned to 64 bytes.
struct StreamedCopy {
  float const* from;
  float* to;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    typename S::Floats values;
    S::load(values, from + i, count);
    if (count == S::lanes) {
      S::stream(to + i, values);
    } else {
      S::store(to + i, values, count);
    }
  }
};

ROUNDPIPE_INLINE bool stream_elements(HostSpan<std::byte const> from,
                                      DType from_type,
                                      HostArray const& to) {
  auto const is_aligned = [](std::byte const* at) {
    return reinterpret_cast<std::uintptr_t>(at) % 64 == 0;
  };
  if (!is_aligned(from.data()) || !is_aligned(to.data)) {
    return false;
  }
  auto const* const floats = reinterpret_cast<float const*>(from.data());
  auto const* const halves = reinterpret_cast<std::uint16_t const*>(from.data());
  auto* const to_floats = reinterpret_cast<float*>(to.data);
  auto* const to_halves = reinterpret_cast<std::uint16_t*>(to.data);
  if (from_type == to.dtype) {
    auto const whole = from.size() / sizeof(float);
    for_each_element(whole, StreamedCopy{floats, to_floats});
    auto const rest = from.subspan(whole * sizeof(float));
    std::ranges::copy(rest, to.data + whole * sizeof(float));
  } else if (from_type == DType::bf16 && to.dtype == DType::f32) {
    for_each_element(to.size, Widen<DType::bf16, false, true>{halves, to_floats});
  } else if (from_type == DType::f16 && to.dtype == DType::f32) {
    for_each_element(to.size, Widen<DType::f16, false, true>{halves, to_floats});
  } else if (from_type == DType::f32 && to.dtype == DType::bf16) {
    for_each_element(to.size, Narrow<DType::bf16, true>{floats, to_halves});
  } else if (from_type == DType::f32 && to.dtype == DType::f16) {
    for_each_element(to.size, Narrow<DType::f16, true>{floats, to_halves});
  } else {
    return false;
  }
  stream_fence();
  return true;
}

}  // namespace detail

ROUNDPIPE_INLINE void convert_elements(HostSpan<std::byte const> from,
                                       DType from_type,
                                       HostArray const& to,
                                       Stores stores) {
  if (!can_convert(from_type, to.dtype)) {
    throw Error(Errc::unsupported,
                "elements of " + std::string(name_of(from_type)) + " cannot become " +
                    std::string(name_of(to.dtype)));
  }
  require(from.size() == to.size * size_of(from_type),
          Errc::invalid_argument,
          "convert_elements() takes as many elements as it gives");
  if (from.empty() ||
      (stores == Stores::streamed && detail::stream_elements(from, from_type, to))) {
    return;
  }
  if (from_type == to.dtype) {
    std::memcpy(to.data, from.data(), from.size());
    return;
  }
  detail::ConversionWindow window;
  for (std::size_t begin = 0; begin < to.size; begin += detail::converted_at_once) {
    auto const count = std::min(detail::converted_at_once, to.size - begin);
    auto const source = from.subspan(begin * size_of(from_type), count * size_of(from_type));
    auto const part = to.part(begin, begin + count);
    if (to.dtype == DType::f32) {  // from another type: the floats are made in their place
      (void)window.floats(source, from_type, {reinterpret_cast<float*>(part.data), count});
    } else if (to.dtype == DType::f64) {
      std::ranges::copy(window.floats(source, from_type, {}), reinterpret_cast<double*>(part.data));
    } else {
      narrow(window.floats(source, from_type, {}), to.dtype, part.bytes());
    }
  }
}

}  // namespace roundpipe
