// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/simd.hpp>

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/simd_level.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace simd_test {

namespace {

using namespace roundpipe;

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
bool is_nan(std::uint32_t bits) {
  return (bits & 0x7fffffffU) > 0x7f800000U;
}

[[gnu::noinline]] std::vector<std::uint16_t> narrowed(std::vector<float> const& values,
                                                      DType type) {
  std::vector<std::uint16_t> result(values.size());
  narrow(values, type, std::as_writable_bytes(std::span(result)));
  return result;
}

std::vector<float> widened(std::vector<std::uint16_t> const& halves, DType type) {
  std::vector<float> result(halves.size());
  widen(std::as_bytes(std::span(halves)), type, result, false);
  return result;
}

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> result(65536);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::uint16_t>(i);
  }
  return result;
}

/// The results of one level for an array, in an order that exposes mistakes.
struct Square {
  float const* from;
  float* to;

  template <class S>
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const {
    typename S::Floats v;
    typename S::Floats product;
    S::load(v, from + i, count);
    product = v * v;
    S::rounded(product);
    v = product - v;
    S::square_roots(v);
    S::store(to + i, v, count);
  }
};

}  // namespace

TEST_CASE("the portable level exists everywhere, and levels ascend to the best one") {
  auto const levels = simd_levels();
  CHECK(levels.front() == SimdLevel::portable);
  CHECK(levels.back() == best_simd_level());
  CHECK(std::is_sorted(levels.begin(), levels.end()));
  CHECK(simd_level() == best_simd_level());
}

TEST_CASE("an override lasts for its lifetime") {
  {
    SimdLevelOverride const outer(SimdLevel::portable);
    CHECK(simd_level() == SimdLevel::portable);
    {
      SimdLevelOverride const inner(best_simd_level());
      CHECK(simd_level() == best_simd_level());
    }
    CHECK(simd_level() == SimdLevel::portable);
  }
  CHECK(simd_level() == best_simd_level());
  if (best_simd_level() != SimdLevel::avx512) {
    CHECK_THROWS_AS(static_cast<void>(SimdLevelOverride{SimdLevel::avx512}), Error);
  }
}

TEST_CASE("levels have names") {
  CHECK(name_of(SimdLevel::portable) == "portable");
  CHECK(name_of(SimdLevel::avx2) == "avx2");
  CHECK(name_of(SimdLevel::avx512) == "avx512");
}

TEST_CASE("products are rounded before additions, at every level, size and alignment") {
  // (1 + 2^-12)^2 minus its rounded value: a fused operation would keep the last bit, 2^-24.
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    for (std::size_t size = 0; size <= 67; ++size) {
      for (std::size_t shift = 0; shift < 3; ++shift) {
        std::vector<float> from(size + shift + 1, 1 + 0x1p-12F);
        std::vector<float> to(size + shift + 1, -7);
        detail::for_each_element(size, Square{from.data() + shift, to.data() + shift});
        auto const expected = std::sqrt(0x1p-12F);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < to.size(); ++i) {
          auto const inside = i >= shift && i < size + shift;
          wrong += to[i] == (inside ? expected : -7) ? 0U : 1U;
        }
        REQUIRE(wrong == 0);
      }
    }
  }
}

TEST_CASE("every bf16 number is widened exactly and narrowed back") {
  auto const halves = all_halves();
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    auto const floats = widened(halves, DType::bf16);
    auto const back = narrowed(floats, DType::bf16);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      REQUIRE(bits_of(floats[i]) == std::uint32_t{halves[i]} << 16);
      REQUIRE(back[i] == BFloat16(floats[i]).bits());
    }
  }
}

TEST_CASE("every f16 number is widened exactly and narrowed back; NaNs become quiet") {
  auto const halves = all_halves();
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    auto const floats = widened(halves, DType::f16);
    auto const back = narrowed(floats, DType::f16);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      auto expected = bits_of(static_cast<float>(Float16::from_bits(halves[i])));
      auto half = halves[i];
      if (is_nan(expected)) {
        expected |= 1U << 22;
        half |= 0x200U;
      }
      REQUIRE(bits_of(floats[i]) == expected);
      REQUIRE(back[i] == half);
    }
  }
}

TEST_CASE("floats at, beside and between all f16 and bf16 numbers round to nearest even") {
  std::vector<float> values;
  auto const around = [&](float low, float high) {
    auto const middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) /
                                           2);  // exact for finite numbers
    for (auto const value : {low, middle}) {
      auto const bits = bits_of(value);
      for (auto const b : {bits - 1, bits, bits + 1}) {
        values.push_back(float_of(b));
        values.push_back(float_of(b ^ 0x80000000U));
      }
    }
  };
  for (std::uint32_t i = 0; i < 0x7c00; ++i) {
    around(static_cast<float>(Float16::from_bits(static_cast<std::uint16_t>(i))),
           static_cast<float>(Float16::from_bits(static_cast<std::uint16_t>(i + 1))));
  }
  for (std::uint32_t i = 0; i < 0x7f80; ++i) {
    around(float_of(i << 16), float_of((i + 1) << 16));
  }
  for (auto const value : {65504.0F,
                           65519.99F,
                           65520.0F,
                           65536.0F,
                           1e30F,
                           0x1p-25F,
                           0x1.002p-25F,
                           std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::denorm_min(),
                           std::numeric_limits<float>::infinity()}) {
    values.push_back(value);
    values.push_back(-value);
  }
  for (auto const payload : {1U, 0x1fffU, 0x2000U, 0x8000U, 0x3fffffU, 0x400000U, 0x7fffffU}) {
    values.push_back(float_of(0x7f800000U | payload));
    values.push_back(float_of(0xff800000U | payload));
  }
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    auto const f16 = narrowed(values, DType::f16);
    auto const bf16 = narrowed(values, DType::bf16);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      wrong += f16[i] == Float16(values[i]).bits() ? 0U : 1U;
      wrong += bf16[i] == BFloat16(values[i]).bits() ? 0U : 1U;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("conversions give the same bits at every level, size and alignment") {
  std::vector<float> values(200);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(static_cast<float>(i) - 97.3F, static_cast<int>(i % 40) - 25);
  }
  for (auto const type : {DType::bf16, DType::f16}) {
    auto const whole = narrowed(values, type);
    for (auto const level : simd_levels()) {
      SimdLevelOverride const use(level);
      for (std::size_t size = 0; size <= 70; ++size) {
        for (std::size_t first = 0; first < 5; ++first) {
          std::vector<std::uint16_t> part(size + 1, 0x1234);
          auto const bytes = std::as_writable_bytes(std::span(part)).first(2 * size);
          narrow(HostSpan<float const>(values).subspan(first, size), type, bytes);
          REQUIRE(std::equal(
              part.begin(), part.end() - 1, whole.begin() + static_cast<std::ptrdiff_t>(first)));
          REQUIRE(part.back() == 0x1234);
          std::vector<float> sums(size + 1, 1.5F);
          widen(bytes, type, HostSpan<float>(sums).first(size), true);
          for (std::size_t i = 0; i < size; ++i) {
            auto const value = type == DType::bf16
                                   ? static_cast<float>(BFloat16::from_bits(part[i]))
                                   : static_cast<float>(Float16::from_bits(part[i]));
            REQUIRE(sums[i] == 1.5F + value);
          }
          REQUIRE(sums.back() == 1.5F);
        }
      }
    }
  }
}

}  // namespace simd_test
