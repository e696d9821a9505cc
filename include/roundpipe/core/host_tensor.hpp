// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A view of a tensor in host memory.

#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <type_traits>

namespace roundpipe {

/// A view of a host tensor: bytes, shape and element type.
struct HostTensor {
  HostSpan<std::byte const> bytes;
  Shape shape;
  DType dtype = DType::f32;

  /// The elements as \p T. \throws Error (invalid_argument) when \p T does not match the dtype.
  template <class T>
  [[nodiscard]] HostSpan<T const> as() const {
    require(dtype_of<std::remove_const_t<T>> == dtype,
            Errc::invalid_argument,
            "a host tensor was read as a different element type than its own");
    return {reinterpret_cast<T const*>(bytes.data()), shape.size()};
  }
};

}  // namespace roundpipe
