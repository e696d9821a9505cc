// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/dtype.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string_view>
#include <type_traits>

namespace {

using roundpipe::BFloat16;
using roundpipe::DType;
using roundpipe::dtype_of;

constexpr DType all_types[] = {
    DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u8};

static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);
static_assert(std::is_convertible_v<BFloat16, float>);   // exact
static_assert(!std::is_convertible_v<float, BFloat16>);  // rounds: must be said

static_assert(size_of(dtype_of<double>) == sizeof(double));
static_assert(size_of(dtype_of<float>) == sizeof(float));
static_assert(size_of(dtype_of<BFloat16>) == sizeof(BFloat16));
static_assert(size_of(dtype_of<std::int64_t>) == 8);
static_assert(size_of(dtype_of<std::int32_t>) == 4);
static_assert(size_of(dtype_of<std::uint8_t>) == 1);

/// The finite bf16 nearest to \p value by its value, in double, ties to the even mantissa; values
/// from half a step above the largest on are infinite.
BFloat16 nearest(float value) {
  auto const magnitude = std::abs(static_cast<double>(value));
  std::uint16_t low = 0;        // the largest not above, by bisection over the ordered bits
  std::uint16_t high = 0x7f80;  // infinity, taken for the next power of two
  auto const at = [](std::uint16_t bits) {
    return bits == 0x7f80 ? 0x1p128 : static_cast<double>(float(BFloat16::from_bits(bits)));
  };
  while (high - low > 1) {
    auto const middle = static_cast<std::uint16_t>((low + high) / 2);
    (at(middle) <= magnitude ? low : high) = middle;
  }
  auto const below = magnitude - at(low);
  auto const above = at(high) - magnitude;
  auto const bits = below < above || (below == above && low % 2 == 0) ? low : high;
  return BFloat16::from_bits(static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0)));
}

}  // namespace

TEST_CASE("every bf16 survives the way to float and back") {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    auto const value = BFloat16::from_bits(static_cast<std::uint16_t>(bits));
    auto const again = BFloat16(float(value));
    if (std::isnan(float(value))) {
      REQUIRE(std::isnan(float(again)));
      REQUIRE(std::signbit(float(again)) == std::signbit(float(value)));
    } else {
      REQUIRE(again.bits() == bits);
    }
  }
}

TEST_CASE("rounding at and around every midpoint goes to nearest, ties to even") {
  for (std::uint32_t upper = 0; upper < 0x7f80; ++upper) {
    for (std::uint32_t const lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      for (std::uint32_t const sign : {0U, 0x80000000U}) {
        auto const value = std::bit_cast<float>(sign | upper << 16 | lower);
        REQUIRE(BFloat16(value).bits() == nearest(value).bits());
      }
    }
  }
}

TEST_CASE("rounding of random floats goes to nearest, ties to even") {
  std::mt19937 random(1);
  for (int i = 0; i < 300'000; ++i) {
    auto const value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(value)) {
      REQUIRE(BFloat16(value).bits() == nearest(value).bits());
    }
  }
}

TEST_CASE("zeros, infinities and the ends of the range") {
  CHECK(BFloat16{}.bits() == 0);
  CHECK(BFloat16(0.0F).bits() == 0);
  CHECK(BFloat16(-0.0F).bits() == 0x8000);
  CHECK(BFloat16(1.0F).bits() == 0x3f80);
  auto const infinity = std::numeric_limits<float>::infinity();
  CHECK(BFloat16(infinity).bits() == 0x7f80);
  CHECK(BFloat16(-infinity).bits() == 0xff80);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits() == 0x7f80);  // nearer to 2^128
  CHECK(BFloat16(0x1.fep127F).bits() == 0x7f7f);
  CHECK(BFloat16(std::numeric_limits<float>::denorm_min()).bits() == 0);
  CHECK(BFloat16(0x1p-133F).bits() == 1);    // the smallest subnormal
  CHECK(BFloat16(0x1p-134F).bits() == 0);    // half of it: to even
  CHECK(BFloat16(0x1.8p-133F).bits() == 2);  // one and a half: to even
}

TEST_CASE("NaN stays NaN, even where its payload is in the lost bits alone") {
  for (std::uint32_t const bits :
       {0x7f800001U, 0x7f80ffffU, 0x7fc00000U, 0x7fffffffU, 0xff800001U, 0xffffffffU}) {
    auto const value = BFloat16(std::bit_cast<float>(bits));
    CHECK(std::isnan(float(value)));
    CHECK((value.bits() & 0x40) != 0);  // quiet
    CHECK((value.bits() >> 15) == (bits >> 31));
  }
}

TEST_CASE("bf16 is computed with as float") {
  CHECK(BFloat16(1.5F) + BFloat16(2.0F) == 3.5F);
  CHECK(BFloat16(1.0F) < BFloat16(2.0F));
  CHECK(BFloat16(0.0F) == BFloat16(-0.0F));
  static_assert(std::is_same_v<decltype(BFloat16{} * BFloat16{}), float>);
  static_assert(float(BFloat16(1.0F + 0x1p-8F)) == 1.0F);  // a tie, at compile time too
}

TEST_CASE("every type has a name of its own and a size") {
  std::set<std::string_view> names;
  for (auto const type : all_types) {
    CHECK(names.insert(name_of(type)).second);
    CHECK(size_of(type) > 0);
  }
  CHECK(name_of(DType::bf16) == "bf16");
}

TEST_CASE("floating types have gradients, which accumulate in at least f32") {
  for (auto const type : all_types) {
    auto const floating = type == DType::f64 || type == DType::f32 || type == DType::bf16;
    CHECK(is_floating(type) == floating);
  }
  CHECK(accumulation_type(DType::bf16) == DType::f32);
  CHECK(accumulation_type(DType::f32) == DType::f32);
  CHECK(accumulation_type(DType::f64) == DType::f64);
}

TEST_CASE("a visitor of floating types gets an element of that type") {
  for (auto const type : {DType::f64, DType::f32, DType::bf16}) {
    auto const seen = visit_floating(type, [](auto zero) { return dtype_of<decltype(zero)>; });
    CHECK(seen == type);
  }
}
