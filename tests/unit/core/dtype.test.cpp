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

namespace dtype_test {

namespace {

using roundpipe::BFloat16;
using roundpipe::DType;
using roundpipe::dtype_of;
using roundpipe::Float16;

constexpr DType all_types[] = {
    DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8};

static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);
static_assert(std::is_convertible_v<BFloat16, float>);   // exact
static_assert(!std::is_convertible_v<float, BFloat16>);  // rounds: must be explicit
static_assert(sizeof(Float16) == 2 && std::is_trivially_copyable_v<Float16>);
static_assert(std::is_convertible_v<Float16, float> && !std::is_convertible_v<float, Float16>);

static_assert(size_of(dtype_of<double>) == sizeof(double));
static_assert(size_of(dtype_of<float>) == sizeof(float));
static_assert(size_of(dtype_of<BFloat16>) == sizeof(BFloat16));
static_assert(size_of(dtype_of<Float16>) == sizeof(Float16));
static_assert(size_of(dtype_of<std::int64_t>) == 8);
static_assert(size_of(dtype_of<std::int32_t>) == 4);
static_assert(size_of(dtype_of<std::uint8_t>) == 1);

/// The bits of infinity. The bits of finite magnitudes lie below, in ascending order.
template <class Half>
constexpr std::uint16_t infinity_bits = std::is_same_v<Half, BFloat16> ? 0x7f80 : 0x7c00;
/// The power of two that follows the largest finite value.
template <class Half>
constexpr double end_of_range = std::is_same_v<Half, BFloat16> ? 0x1p128 : 0x1p16;

/// The \p Half nearest to \p value, computed in double, ties to the even mantissa. Values half a
/// step above the largest, and beyond, are infinite.
template <class Half>
Half nearest(float value) {
  auto const magnitude = std::abs(static_cast<double>(value));
  std::uint16_t low = 0;  // bisection over the ordered bits: the largest not above
  std::uint16_t high = infinity_bits<Half>;
  auto const at = [](std::uint16_t bits) {
    return bits == infinity_bits<Half> ? end_of_range<Half>
                                       : static_cast<double>(float(Half::from_bits(bits)));
  };
  while (high - low > 1) {
    auto const middle = static_cast<std::uint16_t>((low + high) / 2);
    (at(middle) <= magnitude ? low : high) = middle;
  }
  auto const below = magnitude - at(low);
  auto const above = at(high) - magnitude;
  auto const bits = below < above || (below == above && low % 2 == 0) ? low : high;
  return Half::from_bits(static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0)));
}

/// The value of the binary16 with \p bits as IEEE 754 defines it, in double.
double binary16_value(std::uint16_t bits) {
  auto const sign = bits >> 15 == 0 ? 1.0 : -1.0;
  auto const exponent = (bits >> 10) & 0x1f;
  auto const mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

}  // namespace

TEST_CASE_TEMPLATE("every half survives the conversion to float and back",
                   Half,
                   BFloat16,
                   Float16) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    auto const value = Half::from_bits(static_cast<std::uint16_t>(bits));
    auto const again = Half(float(value));
    REQUIRE(value.bits() == bits);
    if (std::isnan(float(value))) {
      REQUIRE(std::isnan(float(again)));
      REQUIRE(std::signbit(float(again)) == std::signbit(float(value)));
    } else {
      REQUIRE(again.bits() == bits);
    }
  }
}

TEST_CASE("every f16 has the value that IEEE 754 defines for its bits") {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    auto const expected = binary16_value(static_cast<std::uint16_t>(bits));
    auto const value = float(Float16::from_bits(static_cast<std::uint16_t>(bits)));
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(value));
    } else {
      REQUIRE(static_cast<double>(value) == expected);
    }
    REQUIRE(std::signbit(value) == (bits >> 15 != 0));
  }
}

TEST_CASE_TEMPLATE("rounding at and around every midpoint goes to nearest, ties to even",
                   Half,
                   BFloat16,
                   Float16) {
  auto const infinity = infinity_bits<Half>;
  for (std::uint16_t bits = 0; bits < infinity; ++bits) {
    auto const next = static_cast<std::uint16_t>(bits + 1);
    auto const low = static_cast<double>(float(Half::from_bits(bits)));
    auto const high =
        next == infinity ? end_of_range<Half> : static_cast<double>(float(Half::from_bits(next)));
    auto const middle = static_cast<float>((low + high) / 2);
    REQUIRE(static_cast<double>(middle) == (low + high) / 2);  // a float holds every midpoint
    auto const far = std::numeric_limits<float>::infinity();
    auto const even = bits % 2 == 0 ? bits : next;
    REQUIRE(Half(middle).bits() == even);
    REQUIRE(Half(std::nextafter(middle, 0.0F)).bits() == bits);
    REQUIRE(Half(std::nextafter(middle, far)).bits() == next);
    REQUIRE(Half(-middle).bits() == (even | 0x8000));
    REQUIRE(Half(-std::nextafter(middle, 0.0F)).bits() == (bits | 0x8000));
    REQUIRE(Half(-std::nextafter(middle, far)).bits() == (next | 0x8000));
    for (auto const value : {std::nextafter(static_cast<float>(low), 0.0F),
                             std::nextafter(static_cast<float>(low), far)}) {
      REQUIRE(Half(value).bits() == nearest<Half>(value).bits());
    }
  }
}

TEST_CASE_TEMPLATE("rounding of random floats goes to nearest, ties to even",
                   Half,
                   BFloat16,
                   Float16) {
  std::mt19937 random(1);
  for (int i = 0; i < 300'000; ++i) {
    auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (i % 2 == 0) {  // an exponent in the range of both types
      auto const fraction = static_cast<float>(random() % (1U << 24)) * 0x1p-24F - 0.5F;
      value = std::ldexp(fraction, static_cast<int>(random() % 48) - 28);
    }
    if (!std::isnan(value)) {
      REQUIRE(Half(value).bits() == nearest<Half>(value).bits());
    }
  }
}

TEST_CASE("zeros, infinities and the ends of the range of bf16") {
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

TEST_CASE("zeros, infinities and the ends of the range of f16") {
  CHECK(Float16{}.bits() == 0);
  CHECK(Float16(0.0F).bits() == 0);
  CHECK(Float16(-0.0F).bits() == 0x8000);
  CHECK(Float16(1.0F).bits() == 0x3c00);
  CHECK(Float16(-2.0F).bits() == 0xc000);
  auto const infinity = std::numeric_limits<float>::infinity();
  CHECK(Float16(infinity).bits() == 0x7c00);
  CHECK(Float16(-infinity).bits() == 0xfc00);
  CHECK(Float16(std::numeric_limits<float>::max()).bits() == 0x7c00);
  CHECK(Float16(65504.0F).bits() == 0x7bff);
  CHECK(Float16(std::nextafter(65520.0F, 0.0F)).bits() == 0x7bff);
  CHECK(Float16(65520.0F).bits() == 0x7c00);   // nearer to 2^16 by the tie
  CHECK(Float16(-65520.0F).bits() == 0xfc00);  // the same for negative numbers
  CHECK(Float16(0x1p-14F).bits() == 0x400);    // the smallest normal
  CHECK(Float16(0x1.ff8p-15F).bits() == 0x3ff);
  CHECK(Float16(0x1.ffcp-15F).bits() == 0x400);  // a tie that rounds up to a normal number
  CHECK(Float16(0x1p-24F).bits() == 1);          // the smallest subnormal
  CHECK(Float16(0x1p-25F).bits() == 0);          // half of it: to even
  CHECK(Float16(std::nextafter(0x1p-25F, 1.0F)).bits() == 1);
  CHECK(Float16(0x1.8p-24F).bits() == 2);  // one and a half: to even
  CHECK(Float16(std::numeric_limits<float>::denorm_min()).bits() == 0);
}

TEST_CASE("NaN stays NaN, even when only the lost bits hold its payload") {
  for (std::uint32_t const bits :
       {0x7f800001U, 0x7f80ffffU, 0x7fc00000U, 0x7fffffffU, 0xff800001U, 0xffffffffU}) {
    auto const value = BFloat16(std::bit_cast<float>(bits));
    CHECK(std::isnan(float(value)));
    CHECK((value.bits() & 0x40) != 0);  // quiet
    CHECK((value.bits() >> 15) == (bits >> 31));
    auto const half = Float16(std::bit_cast<float>(bits));
    CHECK(std::isnan(float(half)));
    CHECK((half.bits() & 0x200) != 0);
    CHECK((half.bits() >> 15) == (bits >> 31));
  }
}

TEST_CASE("arithmetic on halves uses float") {
  CHECK(BFloat16(1.5F) + BFloat16(2.0F) == 3.5F);
  CHECK(BFloat16(1.0F) < BFloat16(2.0F));
  CHECK(BFloat16(0.0F) == BFloat16(-0.0F));
  static_assert(std::is_same_v<decltype(BFloat16{} * BFloat16{}), float>);
  static_assert(float(BFloat16(1.0F + 0x1p-8F)) == 1.0F);  // a tie, at compile time too
  CHECK(Float16(1.5F) + Float16(2.0F) == 3.5F);
  CHECK(Float16(0.0F) == Float16(-0.0F));
  static_assert(std::is_same_v<decltype(Float16{} * BFloat16{}), float>);
  static_assert(float(Float16(1.0F + 0x1p-11F)) == 1.0F);
  static_assert(float(Float16(0x1.8p-24F)) == 0x1p-23F);
}

TEST_CASE("every type has its own name and a size") {
  std::set<std::string_view> names;
  for (auto const type : all_types) {
    CHECK(names.insert(name_of(type)).second);
    CHECK(size_of(type) > 0);
  }
  CHECK(name_of(DType::bf16) == "bf16");
  CHECK(name_of(DType::f16) == "f16");
}

TEST_CASE("floating types have gradients, which accumulate in at least f32") {
  for (auto const type : all_types) {
    auto const floating =
        type == DType::f64 || type == DType::f32 || type == DType::bf16 || type == DType::f16;
    CHECK(is_floating(type) == floating);
  }
  CHECK(accumulation_type(DType::bf16) == DType::f32);
  CHECK(accumulation_type(DType::f16) == DType::f32);
  CHECK(accumulation_type(DType::f32) == DType::f32);
  CHECK(accumulation_type(DType::f64) == DType::f64);
}

TEST_CASE("a visitor of floating types receives an element of the type") {
  for (auto const type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    auto const seen = visit_floating(type, [](auto zero) { return dtype_of<decltype(zero)>; });
    CHECK(seen == type);
  }
}

}  // namespace dtype_test
