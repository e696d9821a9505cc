// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Round numbers along a time axis.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace roundpipe::detail {

/// \p value with \p decimals digits after the point, in any locale.
[[nodiscard]] inline std::string fixed_number(double value, int decimals) {
  std::array<char, 400> digits;  // more than the largest double has
  auto const end = digits.data() + digits.size();
  return {digits.data(),
          std::to_chars(digits.data(), end, value, std::chars_format::fixed, decimals).ptr};
}

/// 1, 2 or 5 times a power of ten.
struct RoundStep {
  double size = 0;
  int decimals = 0;  ///< Digits behind the point that tell its multiples apart.
};

/// The smallest such step of which \p span holds at most \p most.
/// Preconditions: \p span is positive, \p most at least 1.
[[nodiscard]] inline RoundStep round_step(double span, std::size_t most) {
  // Rounding errors may put a multiple slightly past the end.
  double const reach = span * (1 + 1e-9);
  auto const finest =
      static_cast<int>(std::floor(std::log10(span / static_cast<double>(most)))) - 1;
  int exponent = finest;
  double step = 0;
  for (int i = 0; step == 0 || std::floor(reach / step) > static_cast<double>(most); ++i) {
    constexpr double digits[] = {1, 2, 5};
    exponent = finest + i / 3;
    step = digits[i % 3] * std::pow(10.0, exponent);
  }
  return {step, std::max(0, -exponent)};
}

struct TimeTick {
  double at_s = 0;
  std::string label;
};

/// Multiples, from 0 to \p span_s, of 1, 2 or 5 times a power of ten: of the smallest such step
/// that gives at most \p most multiples beyond 0. In seconds if the span has at least one,
/// otherwise in milliseconds.
/// Preconditions: \p span_s is positive, \p most at least 1.
[[nodiscard]] inline std::vector<TimeTick> time_ticks(double span_s, std::size_t most) {
  bool const in_seconds = span_s >= 1;
  double const unit_s = in_seconds ? 1 : 1e-3;
  double const span = span_s / unit_s;
  auto const step = round_step(span, most);
  std::vector<TimeTick> ticks;
  for (std::size_t i = 0; static_cast<double>(i) * step.size <= span * (1 + 1e-9); ++i) {
    double const value = static_cast<double>(i) * step.size;
    ticks.push_back(
        {value * unit_s, fixed_number(value, step.decimals) + (in_seconds ? " s" : " ms")});
  }
  return ticks;
}

}  // namespace roundpipe::detail
