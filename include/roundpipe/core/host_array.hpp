// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief An array in host memory whose element type is known at run time.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>

namespace roundpipe {

/// Elements of one type in host memory; does not own it.
struct HostArray {
  std::byte* data = nullptr;  ///< Aligned to an element.
  std::size_t size = 0;       ///< In elements.
  DType dtype = DType::f32;

  /// Whether there is an array, be it empty.
  [[nodiscard]] constexpr bool present() const noexcept { return data != nullptr; }

  /// Elements [\p begin, \p end); of an absent array, an absent one.
  /// \throws Error (invalid_argument) unless begin <= end <= size.
  [[nodiscard]] constexpr HostArray part(std::size_t begin, std::size_t end) const {
    if (!present()) {
      return *this;
    }
    require(begin <= end && end <= size, Errc::invalid_argument, "a part lies within its array");
    return {data + begin * size_of(dtype), end - begin, dtype};
  }

  [[nodiscard]] constexpr HostBytes bytes() const noexcept { return {data, size * size_of(dtype)}; }
};

}  // namespace roundpipe
