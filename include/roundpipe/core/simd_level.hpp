// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which vector instructions the CPU loops use: the best ones of the machine, or a level
/// that a test or bench selects. Every level gives the same bits.

#include <roundpipe/core/error.hpp>

#include <atomic>
#include <cstddef>
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
[[nodiscard]] inline SimdLevel best_simd_level() noexcept {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  static auto const best = [] {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c")) {
      return SimdLevel::portable;
    }
    auto const all = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return all ? SimdLevel::avx512 : SimdLevel::avx2;
  }();
  return best;
#else
  return SimdLevel::portable;
#endif
}

/// The levels of this machine, in ascending order.
[[nodiscard]] inline std::span<SimdLevel const> simd_levels() noexcept {
  static constexpr SimdLevel all[] = {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512};
  return std::span(all).first(static_cast<std::size_t>(best_simd_level()) + 1);
}

namespace detail {

/// The level that \ref SimdLevelOverride selects.
[[nodiscard]] inline std::atomic<SimdLevel>& simd_level_in_use() noexcept {
  static std::atomic level = best_simd_level();
  return level;
}

}  // namespace detail

/// The current level: \ref best_simd_level() unless an override is active.
[[nodiscard]] inline SimdLevel simd_level() noexcept {
  return detail::simd_level_in_use().load(std::memory_order_relaxed);
}

/// \brief Selects another level for all threads during its lifetime; for tests and benches.
///
/// Destroy overrides in the reverse order of construction. Running loops keep their level.
class SimdLevelOverride {
 public:
  /// \throws Error (invalid_argument) for a level that this machine does not have.
  explicit SimdLevelOverride(SimdLevel level) : before_(simd_level()) {
    require(level <= best_simd_level(),
            Errc::invalid_argument,
            "this machine lacks the selected vector instructions");
    detail::simd_level_in_use().store(level, std::memory_order_relaxed);
  }
  SimdLevelOverride(SimdLevelOverride const&) = delete;
  SimdLevelOverride& operator=(SimdLevelOverride const&) = delete;
  ~SimdLevelOverride() { detail::simd_level_in_use().store(before_, std::memory_order_relaxed); }

 private:
  SimdLevel before_;
};

}  // namespace roundpipe
