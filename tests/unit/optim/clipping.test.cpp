// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/optim/clipping.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/simd_level.hpp>
#include <support/optimizer_check.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace clipping_test {

namespace {

using roundpipe::clip_factor;
using roundpipe::Error;
using roundpipe::HostArray;
using roundpipe::HostSpan;
using roundpipe::norm_block_size;
using roundpipe::norm_blocks;
using roundpipe::sum_in_order;
using roundpipe::sum_of_squares;
using roundpipe::sum_squares_by_block;
using roundpipe::test::gradients;

constexpr auto infinity = std::numeric_limits<double>::infinity();
constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();

HostArray host_array(HostSpan<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), roundpipe::DType::f32};
}

}  // namespace

TEST_CASE("the sum of squares is right for every size near the block size") {
  for (std::size_t const size : {0, 1, 7, 8, 9, 4095, 4096, 4097, 10'000, 100'000}) {
    auto const gradient = gradients(size, 1);
    long double sum = 0;
    for (auto const g : gradient) {
      sum += static_cast<long double>(g) * static_cast<long double>(g);
    }
    CHECK(sum_of_squares(gradient) == doctest::Approx(static_cast<double>(sum)).epsilon(1e-13));
  }
  std::vector<float> const threes(5000, 3);
  CHECK(sum_of_squares(threes) == 45'000);
}

TEST_CASE("the sum of squares has the same bits however threads share the blocks") {
  auto gradient = gradients(10 * norm_block_size + 17, 2);
  auto const array = host_array(gradient);
  std::vector<double> whole(norm_blocks(array.size));
  sum_squares_by_block(array, whole);
  CHECK(whole.size() == 11);
  for (std::size_t step = 1; step <= whole.size(); ++step) {  // blocks for each worker
    std::vector<double> sums(whole.size());
    for (std::size_t first = 0; first < sums.size(); first += step) {
      auto const count = std::min(step, sums.size() - first);
      auto const begin = first * norm_block_size;
      auto const end = std::min(begin + count * norm_block_size, array.size);
      sum_squares_by_block(array.part(begin, end), HostSpan<double>(sums).subspan(first, count));
    }
    CHECK(sums == whole);
  }
  CHECK(std::bit_cast<std::uint64_t>(sum_in_order(whole)) ==
        std::bit_cast<std::uint64_t>(sum_of_squares(gradient)));
}

TEST_CASE("squares use the values that a narrow gradient holds") {
  std::vector<roundpipe::BFloat16> narrow(norm_block_size + 3, roundpipe::BFloat16(3.0F));
  HostArray const array{
      reinterpret_cast<std::byte*>(narrow.data()), narrow.size(), roundpipe::DType::bf16};
  std::vector<double> sums(2);
  sum_squares_by_block(array, sums);
  CHECK(sums == std::vector<double>{9.0 * norm_block_size, 27});
}

TEST_CASE(
    "the sum of squares uses eight lanes, summed pairwise, with every vector instruction set") {
  for (std::size_t const size : {0, 1, 5, 8, 15, 16, 100, 4096}) {  // one block
    auto const gradient = gradients(size, 5);
    double lanes[8] = {};
    for (std::size_t i = 0; i < size; ++i) {
      auto const g = static_cast<double>(gradient[i]);
      lanes[i % 8] += g * g;
    }
    auto const expected = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                          ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    for (auto const level : roundpipe::simd_levels()) {
      roundpipe::SimdLevelOverride const use(level);
      CHECK(std::bit_cast<std::uint64_t>(sum_of_squares(gradient)) ==
            std::bit_cast<std::uint64_t>(expected));
    }
  }
}

TEST_CASE("the sum of squares does not depend on the address of the gradient") {
  auto const gradient = gradients(9001, 3);
  for (std::size_t shift = 0; shift < 16; ++shift) {
    std::vector<float> moved(shift + gradient.size());
    std::ranges::copy(gradient, moved.begin() + static_cast<std::ptrdiff_t>(shift));
    CHECK(sum_of_squares(HostSpan<float const>(moved).subspan(shift)) == sum_of_squares(gradient));
  }
}

TEST_CASE("large gradients do not overflow and tiny ones do not vanish") {
  std::vector<float> const large(100, std::numeric_limits<float>::max());
  CHECK(std::isfinite(sum_of_squares(large)));
  std::vector<float> const tiny(4, std::numeric_limits<float>::denorm_min());
  CHECK(std::sqrt(sum_of_squares(tiny)) == 0x1p-148);
}

TEST_CASE("an element that is not finite makes the sum not finite") {
  auto gradient = gradients(5000, 4);
  gradient[4321] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(sum_of_squares(gradient)));
  gradient[4321] = -std::numeric_limits<float>::infinity();
  CHECK(sum_of_squares(gradient) == infinity);
}

TEST_CASE("each block has one sum") {
  std::vector<float> gradient(norm_block_size + 1);
  std::vector<double> one(1);
  CHECK_THROWS_AS(sum_squares_by_block(host_array(gradient), one), Error);
  CHECK(norm_blocks(0) == 0);
  CHECK(norm_blocks(1) == 1);
  CHECK(norm_blocks(norm_block_size) == 1);
  CHECK(norm_blocks(norm_block_size + 1) == 2);
}

TEST_CASE("norms within the limit stay the same, larger norms are scaled to the limit") {
  CHECK(clip_factor(0, 1) == 1);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(1, 1) == 1);
  CHECK(clip_factor(4, 1) == 0.25);
  CHECK(clip_factor(4, infinity) == 1);
  for (auto norm = 1e-300; norm < 1e300; norm *= 977) {
    CHECK(clip_factor(norm, 2.5) * norm <= 2.5 * (1 + 1e-15));
  }
}

TEST_CASE("a norm that is not finite has no factor") {
  CHECK(std::isnan(clip_factor(not_a_number, 1)));
  CHECK(std::isnan(clip_factor(infinity, 1)));
  CHECK(std::isnan(clip_factor(infinity, infinity)));
}

TEST_CASE("invalid limits are refused") {
  CHECK_THROWS_AS((void)clip_factor(1, 0), Error);
  CHECK_THROWS_AS((void)clip_factor(1, -1), Error);
  CHECK_THROWS_AS((void)clip_factor(1, not_a_number), Error);
  CHECK_THROWS_AS((void)clip_factor(-1, 1), Error);
}

}  // namespace clipping_test
