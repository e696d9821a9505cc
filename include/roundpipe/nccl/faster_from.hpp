// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief From which size on one way of exchanging is faster than another.

#include <cstddef>
#include <limits>
#include <span>

namespace roundpipe::nccl {

/// What an exchange with messages of \c bytes takes on either way.
struct ExchangeTimes {
  std::size_t bytes = 0;
  double other_s = 0;  ///< On the way that is there anyway.
  double wire_s = 0;
};

/// The least of the sizes of \p times, which ascend, from which on the wire was faster at every
/// one. Where it was slower at the largest, no message is large enough.
[[nodiscard]] inline std::size_t faster_from(std::span<ExchangeTimes const> times) {
  auto smallest = std::numeric_limits<std::size_t>::max();
  for (auto i = times.size(); i > 0 && times[i - 1].wire_s < times[i - 1].other_s; --i) {
    smallest = times[i - 1].bytes;
  }
  return smallest;
}

}  // namespace roundpipe::nccl
