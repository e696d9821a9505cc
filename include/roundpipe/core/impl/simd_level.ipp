// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd_level.hpp>

#include <atomic>
#include <cstddef>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE SimdLevel best_simd_level() noexcept {
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

ROUNDPIPE_INLINE std::span<SimdLevel const> simd_levels() noexcept {
  static constexpr SimdLevel all[] = {SimdLevel::portable, SimdLevel::avx2, SimdLevel::avx512};
  return std::span(all).first(static_cast<std::size_t>(best_simd_level()) + 1);
}

namespace detail {

ROUNDPIPE_INLINE std::atomic<SimdLevel>& simd_level_in_use() noexcept {
  static std::atomic level = best_simd_level();
  return level;
}

}  // namespace detail

ROUNDPIPE_INLINE SimdLevel simd_level() noexcept {
  return detail::simd_level_in_use().load(std::memory_order_relaxed);
}

ROUNDPIPE_INLINE SimdLevelOverride::SimdLevelOverride(SimdLevel level) : before_(simd_level()) {
  require(level <= best_simd_level(),
          Errc::invalid_argument,
          "this machine lacks the selected vector instructions");
  detail::simd_level_in_use().store(level, std::memory_order_relaxed);
}

}  // namespace roundpipe
