// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Conversion of arrays between floating types, from any address.

#include <roundpipe/config.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>

namespace roundpipe {

/// Whether \ref convert_elements can: the types are the same, or both are floating.
[[nodiscard]] constexpr bool can_convert(DType from, DType to) noexcept {
  return from == to || (is_floating(from) && is_floating(to));
}

/// How \ref convert_elements writes.
enum class Stores {
  cached,    ///< For who reads the elements soon.
  streamed,  ///< Past the caches, where types and addresses allow that: for large arrays.
};

/// Writes the \p to.size elements of \p from_type in \p from, which need not be aligned, to \p to.
/// Equal types are copied bit for bit. Narrowing rounds to nearest, ties to even, as \ref narrow
/// does; f64 becomes f32 first, so f64 to bf16 or f16 rounds twice. The arrays must not overlap.
/// \throws Error (invalid_argument) when \p from has not as many bytes as its elements take;
///         (unsupported) when it holds integers and \p to another type, or the reverse.
void convert_elements(HostSpan<std::byte const> from,
                      DType from_type,
                      HostArray const& to,
                      Stores stores = Stores::cached);

namespace detail {

/// Does what \ref convert_elements does, past the caches. \returns whether types and addresses
/// allow that; if not, nothing is written.
[[nodiscard]] bool stream_elements(HostSpan<std::byte const> from,
                                   DType from_type,
                                   HostArray const& to);

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/element_conversion.ipp>
#endif
