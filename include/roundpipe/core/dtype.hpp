// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Element types of tensors.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/half.hpp>

#include <cstdint>
#include <string_view>

namespace roundpipe {

/// The element type of a tensor.
enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, u8 };

/// Bytes of one element.
[[nodiscard]] constexpr Bytes size_of(DType type) noexcept {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

[[nodiscard]] constexpr std::string_view name_of(DType type) noexcept {
  switch (type) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  return "?";
}

/// Whether elements are real numbers, so that they have gradients.
[[nodiscard]] constexpr bool is_floating(DType type) noexcept {
  return type == DType::f64 || type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

/// The type in which gradients of parameters of \p type accumulate: f64 for f64, else f32.
[[nodiscard]] constexpr DType accumulation_type(DType type) noexcept {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

/// The \ref DType of the C++ type \p T.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "T is not an element type of a roundpipe tensor");
  return DType::u8;
}();
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<Float16> = DType::f16;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

/// Calls \p f with a value-initialized element of the floating type \p type.
template <class F>
constexpr decltype(auto) visit_floating(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::f16:
      return f(Float16{});
    default:
      return f(float{});
  }
}

}  // namespace roundpipe
