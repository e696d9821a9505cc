// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The random numbers that updates and sums of gradients round with: functions of the step
/// and the parameter's place alone.

#include <roundpipe/core/id.hpp>
#include <roundpipe/core/random.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// The key of step \p step of tensor \p tensor of \p block.
[[nodiscard]] constexpr RandomKey rounding_key(std::uint64_t seed,
                                               std::uint64_t step,
                                               BlockId block,
                                               std::size_t tensor) noexcept {
  constexpr std::uint32_t rounding = 0xFFFFFFFEU;  // no micro-batch has this number
  return {seed,
          static_cast<std::uint32_t>(step),
          static_cast<std::uint32_t>(block.index()),
          rounding,
          static_cast<std::uint32_t>(tensor)};
}

/// The key of addition \p addition to the sum of a tensor's gradient in step \p step: the first
/// gradient is none, the second is addition 1.
[[nodiscard]] constexpr RandomKey sum_rounding_key(std::uint64_t seed,
                                                   std::uint64_t step,
                                                   BlockId block,
                                                   std::size_t tensor,
                                                   std::uint32_t addition) noexcept {
  constexpr std::uint32_t additions = 0x80000000U;  // no micro-batch has so high a number
  auto key = rounding_key(seed, step, block, tensor);
  key.micro_batch = additions + addition;
  return key;
}

}  // namespace roundpipe
