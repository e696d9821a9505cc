// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Copies between host arrays of fp32 and of a tensor's declared type.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstring>

namespace roundpipe {

/// Writes \p values to \p memory as elements of \p type (f32 or bf16), rounding to nearest even.
/// \throws Error (invalid_argument) for another type or when \p memory is too small.
inline void narrow(HostSpan<float const> values, DType type, HostBytes memory) {
  require((type == DType::f32 || type == DType::bf16) &&
              memory.size() >= values.size() * size_of(type),
          Errc::invalid_argument,
          "narrow() writes f32 or bf16 to memory that holds them");
  if (type == DType::f32) {
    if (!values.empty()) {
      std::memcpy(memory.data(), values.data(), values.size_bytes());
    }
    return;
  }
  auto* const to = reinterpret_cast<BFloat16*>(memory.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    to[i] = BFloat16(values[i]);
  }
}

/// Writes to \p sums, or adds to it when \p adds, the elements of \p type (f32 or bf16) in
/// \p memory. \throws Error (invalid_argument) as \ref narrow does.
inline void widen(HostSpan<std::byte const> memory, DType type, HostSpan<float> sums, bool adds) {
  require((type == DType::f32 || type == DType::bf16) &&
              memory.size() >= sums.size() * size_of(type),
          Errc::invalid_argument,
          "widen() reads f32 or bf16 from memory that holds them");
  auto const run = [&](auto const* from) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      auto const value = static_cast<float>(from[i]);
      sums[i] = adds ? sums[i] + value : value;
    }
  };
  if (type == DType::f32) {
    run(reinterpret_cast<float const*>(memory.data()));
  } else {
    run(reinterpret_cast<BFloat16 const*>(memory.data()));
  }
}

}  // namespace roundpipe
