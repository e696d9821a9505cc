// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The two 16-bit floating types, bfloat16 and binary16, with round-to-nearest-even.

#include <bit>
#include <cstdint>

namespace roundpipe {

/// A bfloat16 number: the upper half of an IEEE binary32.
class BFloat16 {
 public:
  constexpr BFloat16() noexcept = default;

  /// Rounds to nearest, ties to even; NaN stays NaN.
  constexpr explicit BFloat16(float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
      bits_ = static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    } else {
      bits_ = static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
    }
  }

  constexpr operator float() const noexcept {  // widening is exact
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }

  [[nodiscard]] static constexpr BFloat16 from_bits(std::uint16_t bits) noexcept {
    BFloat16 result;
    result.bits_ = bits;
    return result;
  }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  std::uint16_t bits_ = 0;
};

/// An IEEE binary16 number ("half precision"): a sign, 5 bits of exponent, 10 of mantissa. Finite
/// values end at 65504, normal ones begin at 2^-14, and subnormals are multiples of 2^-24.
class Float16 {
 public:
  constexpr Float16() noexcept = default;

  /// Rounds to nearest, ties to even. Magnitudes of 65520 and more become infinite, magnitudes up
  /// to 2^-25 become 0; NaN stays NaN.
  constexpr explicit Float16(float value) noexcept {
    auto const bits = std::bit_cast<std::uint32_t>(value);
    auto const sign = (bits >> 16) & 0x8000U;
    bits_ = static_cast<std::uint16_t>(sign | rounded(bits & 0x7fffffffU));
  }

  constexpr operator float() const noexcept {  // widening is exact
    auto const sign = (bits_ & 0x8000U) << 16;
    auto const exponent = (bits_ >> 10) & 0x1fU;
    auto const mantissa = bits_ & 0x3ffU;
    if (exponent == 0) {  // normal as a float, so modes that flush subnormals do no harm
      auto const magnitude = static_cast<float>(mantissa) * 0x1p-24F;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    auto const wide = exponent == 0x1f ? 0xffU : exponent + (127 - 15);
    return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
  }

  [[nodiscard]] static constexpr Float16 from_bits(std::uint16_t bits) noexcept {
    Float16 result;
    result.bits_ = bits;
    return result;
  }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  /// The bits of the half nearest to the binary32 magnitude \p bits.
  static constexpr std::uint32_t rounded(std::uint32_t bits) noexcept {
    if (bits > 0x7f800000U) {  // NaN: make it quiet, keep the upper payload bits
      return 0x7e00U | ((bits >> 13) & 0x3ffU);
    }
    if (bits >= 0x47800000U) {  // 2^16 and above: infinity
      return 0x7c00U;
    }
    if (bits >= 0x38800000U) {  // 2^-14 and above: change the bias, shorten the mantissa
      auto const biased =
          bits - ((127U - 15U) << 23);  // a carry yields the next exponent or infinity
      return (biased + 0xfffU + ((biased >> 13) & 1U)) >> 13;
    }
    // From 0.5 on, floats are 2^-24 apart, as subnormal halves are: the addition rounds.
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 0.5F) - 0x3f000000U;
  }

  std::uint16_t bits_ = 0;
};

}  // namespace roundpipe
