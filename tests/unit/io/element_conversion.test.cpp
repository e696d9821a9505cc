// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/element_conversion.hpp>

#include <roundpipe/system/aligned_memory.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace element_conversion_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::array floating{DType::f64, DType::f32, DType::bf16, DType::f16};

/// Bytes of \p count numbers of all magnitudes, as elements of \p type.
std::vector<std::byte> numbers(DType type, std::size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-30, 30);
  std::vector<std::byte> bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    auto value = std::exp2(exponent(random)) * (i % 2 == 0 ? 1 : -1);
    if (i % 50 == 0) {
      value = i % 100 == 0 ? 0 : std::numeric_limits<double>::infinity();
    }
    visit_floating(type, [&](auto element) {
      using T = decltype(element);
      T number{};
      if constexpr (std::is_same_v<T, double>) {
        number = value;
      } else {
        number = T(static_cast<float>(value));
      }
      std::memcpy(bytes.data() + i * sizeof number, &number, sizeof number);
    });
  }
  return bytes;
}

/// The element-by-element oracle.
std::vector<std::byte> converted(std::vector<std::byte> const& from,
                                 DType from_type,
                                 DType to_type) {
  auto const count = from.size() / size_of(from_type);
  std::vector<std::byte> to(count * size_of(to_type));
  for (std::size_t i = 0; i < count; ++i) {
    visit_floating(from_type, [&](auto source) {
      std::memcpy(&source, from.data() + i * sizeof source, sizeof source);
      visit_floating(to_type, [&](auto target) {
        using T = decltype(target);
        if constexpr (std::is_same_v<T, double>) {
          target = static_cast<double>(source);
        } else {
          target = T(static_cast<float>(source));
        }
        std::memcpy(to.data() + i * sizeof target, &target, sizeof target);
      });
    });
  }
  return to;
}

}  // namespace

TEST_CASE("floating types become each other as single elements do, from any address") {
  for (auto const from_type : floating) {
    for (auto const to_type : floating) {
      for (std::size_t const count : {0, 1, 2047, 2048, 2049, 5000}) {
        auto const from = numbers(from_type, count);
        auto const wanted = converted(from, from_type, to_type);
        for (std::size_t const shift : {0, 1, 2, 4}) {
          CAPTURE(name_of(from_type));
          CAPTURE(name_of(to_type));
          CAPTURE(count);
          CAPTURE(shift);
          std::vector<std::byte> shifted(from.size() + shift);
          std::copy(from.begin(), from.end(), shifted.begin() + static_cast<std::ptrdiff_t>(shift));
          std::vector<std::byte> to(count * size_of(to_type));
          convert_elements(
              std::span(shifted).subspan(shift), from_type, {to.data(), count, to_type});
          CHECK(to == wanted);
        }
      }
    }
  }
}

TEST_CASE(
    "elements that are streamed past the caches have the same bits, and no neighbour is touched") {
  for (auto const from_type : floating) {
    for (auto const to_type : floating) {
      for (std::size_t const count : {0, 1, 31, 64, 2049, 5001}) {
        auto const from = numbers(from_type, count);
        auto const wanted = converted(from, from_type, to_type);
        for (std::size_t const shift : {0, 8}) {  // by which memory is aligned to stores, or not
          CAPTURE(name_of(from_type));
          CAPTURE(name_of(to_type));
          CAPTURE(count);
          CAPTURE(shift);
          AlignedMemory const source(from.size() + 64);
          AlignedMemory const target(wanted.size() + 128);
          std::ranges::copy(from, source.bytes().data());
          std::ranges::fill(target.bytes(), std::byte{0x55});
          convert_elements(source.bytes().first(from.size()),
                           from_type,
                           {target.bytes().data() + shift, count, to_type},
                           Stores::streamed);
          auto const to = target.bytes().subspan(shift);
          CHECK(std::ranges::equal(to.first(wanted.size()), wanted));
          CHECK(std::ranges::all_of(to.subspan(wanted.size()),
                                    [](std::byte byte) { return byte == std::byte{0x55}; }));
        }
      }
    }
  }
}

TEST_CASE("arrays are streamed where types and addresses allow that") {
  AlignedMemory const memory(512);
  auto const streams = [&](std::size_t from, DType from_type, std::size_t to, DType to_type) {
    return detail::stream_elements(memory.bytes().subspan(from, 2 * size_of(from_type)),
                                   from_type,
                                   {memory.bytes().data() + 256 + to, 2, to_type});
  };
  for (auto const half : {DType::bf16, DType::f16}) {
    CHECK(streams(0, half, 0, DType::f32));
    CHECK(streams(0, DType::f32, 64, half));
    CHECK(streams(64, half, 0, half));
    CHECK(!streams(2, half, 0, DType::f32));
    CHECK(!streams(0, half, 32, DType::f32));
  }
  CHECK(streams(0, DType::i64, 0, DType::i64));
  CHECK(!streams(0, DType::bf16, 0, DType::f16));
  CHECK(!streams(0, DType::f64, 0, DType::f32));
}

TEST_CASE("elements of the same type are copied bit for bit") {
  for (auto const type : {DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    std::vector<std::byte> from(64);
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = static_cast<std::byte>(i * 37 + 0x70);  // NaNs among them
    }
    std::vector<std::byte> to(64);
    convert_elements(from, type, {to.data(), 64 / size_of(type), type});
    CHECK(to == from);
  }
}

TEST_CASE("integers become nothing else") {
  std::array<std::byte, 8> from{};
  std::array<std::byte, 8> to{};
  auto const refusal = [&](DType from_type, DType to_type) {
    CHECK_FALSE(can_convert(from_type, to_type));
    auto const error =
        error_of([&] { convert_elements(from, from_type, {to.data(), 1, to_type}); });
    CHECK(error.code() == Errc::unsupported);
    return error.message();
  };
  CHECK(contains(refusal(DType::i64, DType::f32), "i64 cannot become f32"));
  (void)refusal(DType::f32, DType::i32);
  (void)refusal(DType::i32, DType::i64);
  CHECK(can_convert(DType::u8, DType::u8));
  CHECK(can_convert(DType::f16, DType::f64));
}

TEST_CASE("the arrays must have equally many elements") {
  std::array<std::byte, 8> from{};
  alignas(8) std::array<std::byte, 8> to{};
  CHECK(error_of([&] { convert_elements(from, DType::f32, {to.data(), 1, DType::f32}); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { convert_elements(from, DType::bf16, {to.data(), 2, DType::f32}); }).code() ==
        Errc::invalid_argument);
}

}  // namespace element_conversion_test
