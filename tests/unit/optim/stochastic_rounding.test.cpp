// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/optim/stochastic_rounding.hpp>

#include <roundpipe/core/half.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/simd_level.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace stochastic_rounding_test {

namespace {

using namespace roundpipe;
using test::error_of;

constexpr RandomKey key{.seed = 5, .step = 3, .layer = 2};

std::vector<float> rounded(std::vector<float> values,
                           RandomKey const& rounding = key,
                           std::size_t array = 0,
                           std::size_t first = 0) {
  round_stochastically(values, rounding, array, first);
  return values;
}

bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

/// Repeated draws for one value.
std::vector<float> draws(float value, std::size_t count, std::size_t array = 0) {
  return rounded(std::vector<float>(count, value), key, array);
}

double mean(std::vector<float> const& values) {
  double sum = 0;
  for (auto const value : values) {
    sum += static_cast<double>(value);
  }
  return sum / static_cast<double>(values.size());
}

/// The random bits of an element, written plainly.
std::uint32_t random_bits(RandomKey const& rounding, std::size_t array, std::uint64_t index) {
  auto const keys = random_block(rounding, index >> 33U);
  auto x = static_cast<std::uint32_t>(index >> 1U) * 0x9e3779b9U + keys[0];
  x = (x ^ (x >> 16U)) * 0x7feb352dU;
  x = (x ^ (x >> 15U)) + keys[1];
  for (std::size_t k = 0; k <= array; ++k) {
    x *= 0xadb4a92dU;
  }
  x ^= x >> 16U;
  return index % 2 == 0 ? x & 0xffffU : x >> 16U;
}

/// A bit for each of 64 \p words elements: whether it is rounded up, when \p share of the gap lies
/// below its value.
std::vector<std::uint64_t> ups(double share,
                               std::size_t words,
                               RandomKey const& rounding,
                               std::size_t array) {
  auto const value = 1 + static_cast<float>(share) * 0x1p-7F;
  auto const results = rounded(std::vector<float>(64 * words, value), rounding, array);
  std::vector<std::uint64_t> bits(words);
  for (std::size_t i = 0; i < results.size(); ++i) {
    bits[i / 64] |= std::uint64_t{results[i] != 1} << (i % 64);
  }
  return bits;
}

/// The correlation of element i of \p a and i + lag of \p b, each 1 with probability \p share, in
/// standard deviations of what independent draws show.
double correlation(std::vector<std::uint64_t> const& a,
                   std::vector<std::uint64_t> const& b,
                   std::size_t lag,
                   double share) {
  auto const words = a.size() - lag / 64 - 1;
  int ones = 0;
  int both = 0;
  for (std::size_t i = 0; i < words; ++i) {
    auto const* const from = &b[i + lag / 64];
    auto const later = lag % 64 == 0 ? from[0] : from[0] >> (lag % 64) | from[1] << (64 - lag % 64);
    ones += std::popcount(a[i]) + std::popcount(later);
    both += std::popcount(a[i] & later);
  }
  auto const pairs = static_cast<double>(64 * words);
  auto const covariance = both - share * ones + pairs * share * share;
  return covariance / (share * (1 - share) * std::sqrt(pairs));
}

}  // namespace

TEST_CASE("a value becomes one of its two neighbours, and the mean is the value") {
  constexpr std::size_t count = std::size_t{1} << 18U;
  for (auto const fraction : {0x1p-16, 0.01, 0.25, 0.5, 0.77, 0.999}) {
    for (auto const low : {1.0, -1.0, 0x1p-20, -3e20, 0x1p-130}) {  // with a subnormal
      auto const below = static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(low))));
      auto const bits = std::bit_cast<std::uint32_t>(static_cast<float>(below));
      auto const above = static_cast<double>(std::bit_cast<float>(bits + 0x10000U));  // outwards
      auto const value = static_cast<float>(below + fraction * (above - below));
      auto const exact = (static_cast<double>(value) - below) / (above - below);
      auto const results = draws(value, count);
      CHECK(std::ranges::all_of(results, [&](float result) {
        auto const x = static_cast<double>(result);
        return x == below || x == above;
      }));
      auto const share = (mean(results) - below) / (above - below);
      // Five standard deviations of a binomial share.
      auto const sigma = std::sqrt(exact * (1 - exact) / static_cast<double>(count));
      CHECK(std::abs(share - exact) <= 5 * sigma);
    }
  }
}

TEST_CASE("bf16 values, infinity and NaN stay the same") {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    values.push_back(std::bit_cast<float>(i << 16));
  }
  values.push_back(std::bit_cast<float>(0x7f800001U));  // NaNs whose payload does not fit into bf16
  values.push_back(std::bit_cast<float>(0x7fffffffU));
  values.push_back(std::bit_cast<float>(0xffffffffU));
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    auto const results = rounded(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        REQUIRE(std::isnan(results[i]));
        REQUIRE(std::signbit(values[i]) == std::signbit(results[i]));
      } else {
        REQUIRE(std::bit_cast<std::uint32_t>(results[i]) ==
                std::bit_cast<std::uint32_t>(values[i]));
      }
    }
  }
}

TEST_CASE("a finite value becomes infinite only if the nearest number is infinite") {
  auto const largest = std::bit_cast<float>(0x7f7f0000U);
  for (auto const bits : {0x7f7f0001U, 0x7f7f7fffU, 0x7f7f8000U, 0x7f7fffffU}) {
    for (auto const sign : {0U, 0x80000000U}) {
      auto const value = std::bit_cast<float>(bits | sign);
      auto const nearest = static_cast<float>(BFloat16(value));
      CHECK((std::abs(nearest) == largest) == (bits < 0x7f7f8000U));
      for (auto const result : draws(value, 1000)) {
        REQUIRE(result == nearest);
      }
    }
  }
}

TEST_CASE("the random bits are those of the documented hash, at every level") {
  constexpr std::size_t count = 100;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::cos(static_cast<float>(i)) * 0x1.234566p3F;
  }
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    for (std::size_t array = 0; array <= 8; ++array) {
      for (std::size_t const first :
           {std::size_t{0}, std::size_t{5}, (std::size_t{1} << 33U) - 31, std::size_t{7} << 40U}) {
        auto const results = rounded(values, key, array, first);
        for (std::size_t i = 0; i < count; ++i) {
          auto const bits = std::bit_cast<std::uint32_t>(values[i]);
          auto const sum = bits + random_bits(key, array, first + i);
          REQUIRE(std::bit_cast<std::uint32_t>(results[i]) == (sum & 0xffff0000U));
        }
      }
    }
  }
}

TEST_CASE("bits depend on key, array and index alone: not on cuts, addresses or instructions") {
  std::vector<float> values(500);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i));
  }
  for (std::size_t const first : {std::size_t{0},
                                  std::size_t{7},
                                  (std::size_t{1} << 33U) - 250,
                                  (std::size_t{1} << 33U) - 33,
                                  std::size_t{9} << 34U}) {
    auto const whole = rounded(values, key, 1, first);
    for (auto const level : simd_levels()) {
      SimdLevelOverride const use(level);
      for (std::size_t const part : {1, 3, 16, 17, 64, 333, 500}) {
        auto parts = values;
        for (std::size_t begin = 0; begin < parts.size(); begin += part) {
          auto const count = std::min(part, parts.size() - begin);
          round_stochastically(HostSpan<float>(parts).subspan(begin, count), key, 1, first + begin);
        }
        CHECK(same_bits(parts, whole));
      }
    }
  }
}

TEST_CASE("keys, arrays and index ranges draw differently") {
  std::vector<float> const values(1000, 1 + 0x1p-8F);
  auto const base = rounded(values);
  std::vector<std::vector<float>> const others{rounded(values, {.seed = 6, .step = 3, .layer = 2}),
                                               rounded(values, {.seed = 5, .step = 4, .layer = 2}),
                                               rounded(values, key, 1),
                                               rounded(values, key, 0, 1),
                                               rounded(values, key, 0, std::size_t{1} << 32U),
                                               rounded(values, key, 0, std::size_t{1} << 33U)};
  for (auto const& other : others) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      same += base[i] == other[i] ? 1U : 0U;
    }
    CHECK(same > 420);  // 500 expected, with a standard deviation of 16
    CHECK(same < 580);
  }
}

TEST_CASE("draws of other elements, arrays and steps are not correlated") {
  constexpr std::size_t words = std::size_t{1} << 14U;  // a correlation of 0.5 % shows
  constexpr std::array<std::size_t, 18> lags{
      1, 2, 3, 4, 8, 15, 16, 17, 32, 64, 512, 2048, 4096, 5000, 8192, 16384, 65536, 262144};
  auto const next = RandomKey{key.seed, key.step + 1, key.layer};
  for (double const share : {0.5, 0x1p-4, 0.9}) {
    std::array<std::vector<std::uint64_t>, 9> of_arrays;
    for (std::size_t k = 0; k < of_arrays.size(); ++k) {
      of_arrays[k] = ups(share, words, key, k);
    }
    for (std::size_t k = 0; k < 3; ++k) {
      auto const of_next_step = ups(share, words, next, k);
      for (std::size_t l = 0; l < 3; ++l) {
        CHECK(std::abs(correlation(of_arrays[l], of_next_step, 0, share)) < 5);
        for (auto const lag : lags) {
          CHECK(std::abs(correlation(of_arrays[k], of_arrays[l], lag, share)) < 5);
          CHECK(std::abs(correlation(of_arrays[k], of_next_step, lag, share)) < 5);
        }
      }
    }
    for (std::size_t k = 0; k < of_arrays.size(); ++k) {
      for (std::size_t l = 0; l < k; ++l) {
        CHECK(std::abs(correlation(of_arrays[k], of_arrays[l], 0, share)) < 5);
      }
    }
  }
}

TEST_CASE("many small additions add up, where rounding to nearest would lose all of them") {
  std::vector<float> sums(4096, 1);
  for (std::uint32_t step = 0; step < 256; ++step) {
    for (auto& sum : sums) {
      sum += 0x1p-12F;  // a 32nd of the distance between bf16 numbers
    }
    round_stochastically(sums, {.seed = 1, .step = step}, 0);
  }
  // Each draw has a variance of at most (1/32) (31/32) 2^-14; there are 256 draws in each of 4096
  // sums.
  auto const sigma = std::sqrt(256.0 / 32 * 0x1p-14 / 4096);
  CHECK(std::abs(mean(sums) - (1 + 256 * 0x1p-12)) < 5 * sigma);
  CHECK(static_cast<float>(BFloat16(1 + 0x1p-12F)) == 1);
}

TEST_CASE("an addition to bf16 sums rounds as round_stochastically() does, at every level") {
  constexpr std::size_t size = 1000;
  std::vector<BFloat16> addends;
  std::vector<BFloat16> sums;
  for (std::size_t i = 0; i < size; ++i) {
    auto const noise = static_cast<std::uint16_t>(random_block(key, i)[0]);  // also inf and NaN
    addends.push_back(std::bit_cast<BFloat16>(noise));
    sums.push_back(BFloat16(static_cast<float>(i % 7) + 0.5F));
  }
  sums[3] = addends[3] = BFloat16(std::numeric_limits<float>::max());
  auto const bytes_of = [](std::vector<BFloat16>& values, std::size_t begin, std::size_t end) {
    return HostBytes(reinterpret_cast<std::byte*>(values.data()) + 2 * begin, 2 * (end - begin));
  };
  std::vector<float> wanted;
  for (std::size_t i = 0; i < size; ++i) {
    wanted.push_back(static_cast<float>(sums[i]) + static_cast<float>(addends[i]));
  }
  constexpr std::size_t first = 77;
  wanted = rounded(wanted, key, 0, first);
  for (auto const level : simd_levels()) {
    SimdLevelOverride const use(level);
    auto got = sums;
    std::size_t begin = 0;
    for (std::size_t const end : {std::size_t{333}, size}) {  // an odd cut
      add_stochastically(
          bytes_of(addends, begin, end), bytes_of(got, begin, end), key, first + begin);
      begin = end;
    }
    for (std::size_t i = 0; i < size; ++i) {
      auto const value = static_cast<float>(got[i]);
      CHECK((value == wanted[i] || (std::isnan(value) && std::isnan(wanted[i]))));
    }
  }
  CHECK(error_of([&] {
          add_stochastically(bytes_of(addends, 0, 2), bytes_of(sums, 0, 1), key);
        }).code() == Errc::invalid_argument);
}

TEST_CASE("an empty array draws nothing") {
  CHECK_NOTHROW(round_stochastically({}, key, 3));
}

}  // namespace stochastic_rounding_test
