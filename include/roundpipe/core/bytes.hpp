// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Byte counts: literals, alignment, parsing and printing with binary units.

#include <roundpipe/core/error.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <iterator>
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
[[nodiscard]] inline std::string format_bytes(Bytes bytes) {
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < std::size(units)) {
    value /= 1024.0;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

/// Parses "4096", "64KiB" or "1.5 GiB". K, M, G, T and a trailing B work too; all units are binary.
/// \throws Error (invalid_argument) when \p text is not a size or is negative.
[[nodiscard]] inline Bytes parse_bytes(std::string_view text) {
  auto const fail = [&]() -> Error {
    std::string message = "'";  // GCC 12 warns about "'" + std::string(text) when it optimizes
    message.append(text).append("' is not a size; write for example 512MiB or 4GiB");
    return {Errc::invalid_argument, message};
  };
  double value = 0;
  auto const [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || !(value >= 0)) {
    throw fail();
  }
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!unit.empty() && unit.front() == ' ') {
    unit.remove_prefix(1);
  }
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view prefixes = "KMGT";
    auto const power = prefixes.find(unit.front());
    auto const tail = unit.substr(1);
    if (power == std::string_view::npos || !(tail.empty() || tail == "iB" || tail == "B")) {
      throw fail();
    }
    for (std::size_t i = 0; i <= power; ++i) {
      factor *= 1024;
    }
  }
  if (value * factor >= 9e18) {
    throw fail();
  }
  return static_cast<Bytes>(value * factor);
}

}  // namespace roundpipe
