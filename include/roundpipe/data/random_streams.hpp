// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The random numbers of datasets.

#include <roundpipe/core/random.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe::detail {

/// What a dataset draws.
enum class DataStream : std::uint32_t { order_of_epoch, rows_of_source, held_out };

/// The key of what \p stream draws for epoch \p epoch and source \p source with the run's \p seed.
[[nodiscard]] constexpr RandomKey data_key(std::uint64_t seed,
                                           DataStream stream,
                                           std::uint64_t epoch,
                                           std::size_t source) noexcept {
  constexpr std::uint32_t data = 0xFFFFFFFCU;  // no layer has this number
  return {seed,
          static_cast<std::uint32_t>(epoch),
          data,
          static_cast<std::uint32_t>(source),
          static_cast<std::uint32_t>(stream)};
}

}  // namespace roundpipe::detail
