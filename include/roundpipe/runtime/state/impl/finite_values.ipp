// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/runtime/state/finite_values.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>

namespace roundpipe {

ROUNDPIPE_INLINE void require_finite(HostSpan<std::byte const> elements,
                                     DType type,
                                     std::string const& title,
                                     std::size_t begin) {
  if (!is_floating(type)) {
    return;
  }
  visit_floating(type, [&]<class T>(T element) {
    auto const count = elements.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&element, elements.data() + i * sizeof(T), sizeof(T));
      auto const value = static_cast<double>(element);
      if (!std::isfinite(value)) [[unlikely]] {
        throw Error(Errc::not_finite,
                    title + "[" + std::to_string(begin + i) + "] is " + std::to_string(value));
      }
    }
  });
}

}  // namespace roundpipe
