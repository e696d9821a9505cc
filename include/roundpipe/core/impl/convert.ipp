// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace roundpipe {

namespace detail {

struct Add {
  float const* from;
  float* to;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const noexcept {
    typename S::Floats values;
    typename S::Floats sums;
    S::load(values, from + i, count);
    S::load(sums, to + i, count);
    sums = sums + values;
    S::store(to + i, sums, count);
  }
};

}  // namespace detail

ROUNDPIPE_INLINE void narrow(HostSpan<float const> values, DType type, HostBytes memory) {
  require(detail::is_convertible(type) && memory.size() >= values.size() * size_of(type),
          Errc::invalid_argument,
          "narrow() writes f32, bf16 or f16 to memory that holds them");
  if (values.empty()) {
    return;
  }
  auto* const halves = reinterpret_cast<std::uint16_t*>(memory.data());
  if (type == DType::f32) {
    std::memmove(memory.data(), values.data(), values.size_bytes());
  } else if (type == DType::bf16) {
    detail::for_each_element(values.size(),
                             detail::Narrow<DType::bf16, false>{values.data(), halves});
  } else {
    detail::for_each_element(values.size(),
                             detail::Narrow<DType::f16, false>{values.data(), halves});
  }
}

ROUNDPIPE_INLINE void widen(HostSpan<std::byte const> memory,
                            DType type,
                            HostSpan<float> sums,
                            bool adds) {
  require(detail::is_convertible(type) && memory.size() >= sums.size() * size_of(type),
          Errc::invalid_argument,
          "widen() reads f32, bf16 or f16 from memory that holds them");
  if (sums.empty()) {
    return;
  }
  auto const* const halves = reinterpret_cast<std::uint16_t const*>(memory.data());
  auto const run = [&](auto const& body) { detail::for_each_element(sums.size(), body); };
  if (type == DType::f32) {
    if (adds) {
      run(detail::Add{reinterpret_cast<float const*>(memory.data()), sums.data()});
    } else {
      std::memmove(sums.data(), memory.data(), sums.size_bytes());
    }
  } else if (type == DType::bf16) {
    adds ? run(detail::Widen<DType::bf16, true>{halves, sums.data()})
         : run(detail::Widen<DType::bf16, false>{halves, sums.data()});
  } else {
    adds ? run(detail::Widen<DType::f16, true>{halves, sums.data()})
         : run(detail::Widen<DType::f16, false>{halves, sums.data()});
  }
}

}  // namespace roundpipe
