// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The random numbers that an update rounds with: a function of the step and the parameter's
/// place alone.

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

}  // namespace roundpipe
