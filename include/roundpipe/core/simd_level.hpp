// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which vector instructions the CPU loops use: the best ones of the machine, or a level
/// that a test or bench selects. Every level gives the same bits.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace roundpipe {

/// Vector instructions, in ascending order.
enum class SimdLevel : std::uint8_t {
  portable,  ///< 16-byte vectors, compiled with the default target.
  avx2,      ///< 32-byte vectors: AVX2 and F16C.
  avx512,    ///< 64-byte vectors: AVX-512 F, BW, DQ and VL.
};

[[nodiscard]] constexpr std::string_view name_of(SimdLevel level) noexcept {
  switch (level) {
    case SimdLevel::portable:
      return "portable";
    case SimdLevel::avx2:
      return "avx2";
    case SimdLevel::avx512:
      return "avx512";
  }
  return "?";
}

/// The highest level that this machine has and this compiler can build. Only GCC on x86-64 builds
/// levels above \c SimdLevel::portable.
[[nodiscard]] SimdLevel best_simd_level() noexcept;

/// The levels of this machine, in ascending order.
[[nodiscard]] std::span<SimdLevel const> simd_levels() noexcept;

namespace detail {

/// The level that \ref SimdLevelOverride selects.
[[nodiscard]] std::atomic<SimdLevel>& simd_level_in_use() noexcept;

}  // namespace detail

/// The current level: \ref best_simd_level() unless an override is active.
[[nodiscard]] SimdLevel simd_level() noexcept;

/// \brief Selects another level for all threads during its lifetime; for tests and benches.
///
/// Destroy overrides in the reverse order of construction. Running loops keep their level.
class SimdLevelOverride {
 public:
  /// \throws Error (invalid_argument) for a level that this machine does not have.
  explicit SimdLevelOverride(SimdLevel level);
  SimdLevelOverride(SimdLevelOverride const&) = delete;
  SimdLevelOverride& operator=(SimdLevelOverride const&) = delete;
  ~SimdLevelOverride() { detail::simd_level_in_use().store(before_, std::memory_order_relaxed); }

 private:
  SimdLevel before_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/core/impl/simd_level.ipp>
#endif
