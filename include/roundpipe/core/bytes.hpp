// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Byte counts: literals, alignment, parsing and printing with binary units.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace roundpipe {

/// A number of bytes.
using Bytes = std::size_t;

inline namespace literals {
constexpr Bytes operator""_KiB(unsigned long long n) noexcept {
  return Bytes{n} << 10;
}
constexpr Bytes operator""_MiB(unsigned long long n) noexcept {
  return Bytes{n} << 20;
}
constexpr Bytes operator""_GiB(unsigned long long n) noexcept {
  return Bytes{n} << 30;
}
}  // namespace literals

/// The alignment in bytes of every tensor of a block, on every device.
inline constexpr Bytes tensor_alignment_bytes = 256;

/// \p bytes rounded up to a multiple of \p alignment.
[[nodiscard]] constexpr Bytes align_up(Bytes bytes,
                                       Bytes alignment = tensor_alignment_bytes) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// \p bytes as readable text, for example "1.50 MiB".
[[nodiscard]] std::string format_bytes(Bytes bytes);

/// Parses "4096", "64KiB" or "1.5 GiB". K, M, G, T and a trailing B work too; all units are binary.
/// \throws Error (invalid_argument) when \p text is not a size or is negative.
[[nodiscard]] Bytes parse_bytes(std::string_view text);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/core/impl/bytes.ipp>
#endif
