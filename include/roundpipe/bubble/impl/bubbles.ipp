// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/bubbles.hpp>

#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE double& Bubbles::operator[](BubbleCause cause) noexcept {
  return seconds_[static_cast<std::size_t>(cause)];
}

ROUNDPIPE_INLINE double Bubbles::operator[](BubbleCause cause) const noexcept {
  return seconds_[static_cast<std::size_t>(cause)];
}

ROUNDPIPE_INLINE double Bubbles::total() const noexcept {
  double sum = 0;
  for (auto const seconds : seconds_) {
    sum += seconds;
  }
  return sum;
}

}  // namespace roundpipe
