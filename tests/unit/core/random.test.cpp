// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace random_test {

namespace {

using roundpipe::normal;
using roundpipe::philox;
using roundpipe::random_block;
using roundpipe::random_word;
using roundpipe::RandomKey;
using roundpipe::uniform;
using Words = std::array<std::uint32_t, 4>;

// The known answers of Random123 for philox4x32-10, at compile time.
static_assert(philox({0, 0, 0, 0}, {0, 0}) ==
              Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

constexpr RandomKey key{.seed = 42, .step = 3, .layer = 5, .micro_batch = 7, .stream = 1};

}  // namespace

TEST_CASE("Philox reproduces the published words") {
  // Again at run time: the optimizer may differ from the constant evaluator.
  std::uint32_t const volatile zero = 0;
  CHECK(philox({zero, zero, zero, zero}, {zero, zero}) ==
        Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}

TEST_CASE("the words of a stream are the words of its blocks, in order") {
  for (std::uint64_t index = 0; index < 40; ++index) {
    CHECK(random_word(key, index) == random_block(key, index / 4)[index % 4]);
  }
}

TEST_CASE("every bit of each key part, and the block number, changes the numbers") {
  std::set<Words> seen{random_block(key, 0)};
  auto const is_new = [&](RandomKey const& other) {
    return seen.insert(random_block(other, 0)).second;
  };
  for (int bit = 0; bit < 64; ++bit) {
    auto other = key;
    other.seed ^= std::uint64_t{1} << bit;
    CHECK(is_new(other));
    CHECK(seen.insert(random_block(key, std::uint64_t{1} << bit)).second);
  }
  for (int bit = 0; bit < 32; ++bit) {
    auto const flip = std::uint32_t{1} << bit;
    for (auto const part :
         {&RandomKey::step, &RandomKey::layer, &RandomKey::micro_batch, &RandomKey::stream}) {
      auto other = key;
      other.*part ^= flip;
      CHECK(is_new(other));
    }
  }
}

TEST_CASE("with_stream changes only the stream") {
  auto const other = key.with_stream(9);
  CHECK(other.stream == 9);
  CHECK(other.with_stream(key.stream) == key);
}

TEST_CASE("uniform numbers are in [0, 1) and come close to both ends") {
  CHECK(uniform(0) == 0.0F);
  CHECK(uniform(0xffffffff) == 1.0F - 0x1p-24F);
  CHECK(uniform(0x80000000) == 0.5F);
}

TEST_CASE("uniform numbers pass a chi-square test") {
  constexpr std::size_t draws = 1 << 16;
  std::array<int, 64> bins{};
  for (std::uint64_t i = 0; i < draws; ++i) {
    ++bins.at(static_cast<std::size_t>(uniform(random_word(key, i)) * 64));
  }
  double chi_square = 0;
  for (auto const count : bins) {
    auto const off = count - draws / 64.0;
    chi_square += off * off / (draws / 64.0);
  }
  CHECK(chi_square > 30);   // 63 degrees of freedom: one draw in 10^4 lies outside
  CHECK(chi_square < 112);  // (the draw is the same in every run)
}

TEST_CASE("normal numbers have the moments of the normal distribution") {
  constexpr int draws = 1 << 17;
  std::array<double, 5> moments{};
  double product = 0;
  float previous = 0;
  for (int i = 0; i < draws; ++i) {
    auto const x = normal(key, static_cast<std::uint64_t>(i));
    REQUIRE(std::isfinite(x));
    for (std::size_t k = 1; k < moments.size(); ++k) {
      moments[k] += std::pow(static_cast<double>(x), static_cast<double>(k)) / draws;
    }
    product += static_cast<double>(x) * static_cast<double>(previous) / draws;
    previous = x;
  }
  CHECK(std::abs(moments[1]) < 0.01);
  CHECK(std::abs(moments[2] - 1) < 0.02);
  CHECK(std::abs(moments[3]) < 0.04);
  CHECK(std::abs(moments[4] - 3) < 0.15);
  CHECK(std::abs(product) < 0.01);  // neighbours share a block, yet are independent
}

TEST_CASE("a number depends on key and index alone, not on earlier draws") {
  std::vector<float> forwards;
  for (std::uint64_t i = 0; i < 100; ++i) {
    forwards.push_back(normal(key, i));
  }
  for (std::uint64_t i = 100; i-- > 0;) {
    CHECK(std::bit_cast<std::uint32_t>(normal(key, i)) ==
          std::bit_cast<std::uint32_t>(forwards[i]));
  }
}

}  // namespace random_test
