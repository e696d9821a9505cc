// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace roundpipe {

ROUNDPIPE_INLINE std::string format_bytes(Bytes bytes) {
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

ROUNDPIPE_INLINE Bytes parse_bytes(std::string_view text) {
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
