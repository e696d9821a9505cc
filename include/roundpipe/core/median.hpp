// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The median of measurements.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// The median of \p values, which are reordered: of an even number, the mean of the two in the
/// middle. None when \p values is empty.
[[nodiscard]] inline std::optional<double> median(std::vector<double>& values) {
  if (values.empty()) {
    return std::nullopt;
  }
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace roundpipe::detail
