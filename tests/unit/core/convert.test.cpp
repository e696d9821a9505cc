// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/convert.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace convert_test {

namespace {

using roundpipe::BFloat16;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::Float16;
using roundpipe::HostSpan;
using roundpipe::narrow;
using roundpipe::widen;
using roundpipe::test::error_of;

std::vector<float> const values{1, -2.5F, 1 + 0x1p-8F, 1 + 0x1.8p-7F, 0x1p-133F, 3.4e38F};

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& elements) {
  return std::as_writable_bytes(std::span(elements));
}

}  // namespace

TEST_CASE("fp32 is narrowed to bf16 element by element, and to itself bit by bit") {
  std::vector<BFloat16> rounded(values.size());
  narrow(values, DType::bf16, bytes_of(rounded));
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(rounded[i].bits() == BFloat16(values[i]).bits());
  }
  std::vector<float> same(values.size());
  narrow(values, DType::f32, bytes_of(same));
  CHECK(same == values);
}

TEST_CASE("widening overwrites or adds") {
  std::vector<BFloat16> memory{BFloat16(1.0F), BFloat16(-2.0F)};
  std::vector<float> sums{10, 20};
  widen(bytes_of(memory), DType::bf16, sums, false);
  CHECK(sums == std::vector<float>{1, -2});
  widen(bytes_of(memory), DType::bf16, sums, true);
  CHECK(sums == std::vector<float>{2, -4});
  std::vector<float> wide{0.5F, 0.25F};
  widen(bytes_of(wide), DType::f32, sums, true);
  CHECK(sums == std::vector<float>{2.5F, -3.75F});
}

TEST_CASE("f16 is narrowed and widened, too") {
  std::vector<float> const some{1, -2.5F, 70000, 0x1p-24F, 1 + 0x1p-11F};
  std::vector<Float16> rounded(some.size());
  narrow(some, DType::f16, bytes_of(rounded));
  for (std::size_t i = 0; i < some.size(); ++i) {
    CHECK(rounded[i].bits() == Float16(some[i]).bits());
  }
  std::vector<float> sums(some.size(), 1);
  widen(bytes_of(rounded), DType::f16, sums, true);
  CHECK(sums[1] == -1.5F);
  CHECK(sums[2] == std::numeric_limits<float>::infinity());
}

TEST_CASE("memory may be larger than its elements, but not smaller") {
  std::vector<BFloat16> memory(values.size() + 3, BFloat16(7.0F));
  narrow(values, DType::bf16, bytes_of(memory));
  CHECK(float(memory[values.size()]) == 7.0F);
  std::vector<BFloat16> small(values.size() - 1);
  CHECK(error_of([&] { narrow(values, DType::bf16, bytes_of(small)); }).code() ==
        Errc::invalid_argument);
  std::vector<float> sums(values.size());
  CHECK(error_of([&] { widen(bytes_of(small), DType::bf16, sums, true); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("only f32, bf16 and f16 are converted") {
  std::vector<std::byte> memory(1000);
  std::vector<float> sums(4);
  for (auto const type : {DType::f64, DType::i64, DType::i32, DType::u8}) {
    CHECK(error_of([&] { narrow(values, type, memory); }).code() == Errc::invalid_argument);
    CHECK(error_of([&] { widen(memory, type, sums, false); }).code() == Errc::invalid_argument);
  }
}

TEST_CASE("empty arrays are converted to empty arrays") {
  CHECK_NOTHROW(narrow({}, DType::f32, {}));
  CHECK_NOTHROW(narrow({}, DType::bf16, {}));
  CHECK_NOTHROW(widen({}, DType::f32, {}, true));
}

}  // namespace convert_test
