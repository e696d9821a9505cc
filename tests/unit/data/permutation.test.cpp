// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/permutation.hpp>

#include <roundpipe/core/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

namespace permutation_test {

using namespace roundpipe;

namespace {

std::vector<std::uint64_t> all_of(RandomPermutation const& permutation) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(permutation.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = permutation(i);
  }
  return values;
}

void check_bijective(std::uint64_t size, RandomKey const& key) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  std::size_t count = 0;
  for (auto const value : all_of(RandomPermutation(size, key))) {
    if (value < size && !seen[static_cast<std::size_t>(value)]) {
      seen[static_cast<std::size_t>(value)] = true;
      ++count;
    }
  }
  CHECK(count == size);
}

}  // namespace

TEST_CASE("every number comes once, for all small sizes and those around powers of two") {
  for (std::uint64_t size = 1; size <= 300; ++size) {
    for (std::uint32_t step = 0; step < 3; ++step) {
      check_bijective(size, {.seed = 7, .step = step});
    }
  }
  for (std::uint64_t power = 512; power <= 16384; power *= 2) {
    for (auto const size : {power - 1, power, power + 1}) {
      check_bijective(size, {.seed = 8});
    }
  }
  check_bijective(100'003, {.seed = 9});
}

TEST_CASE("sizes up to the largest stay in their range, and repeat nothing") {
  for (auto const size : {std::uint64_t{1} << 32,
                          (std::uint64_t{1} << 32) + 1,
                          (std::uint64_t{1} << 53) - 1,
                          (std::uint64_t{1} << 62) + 1,
                          ~std::uint64_t{0}}) {
    RandomPermutation const permutation(size, {.seed = 3});
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      auto const value = permutation(i * (size / 1000));
      CHECK(value < size);
      CHECK(seen.insert(value).second);
    }
  }
}

TEST_CASE("each part of the key gives another order") {
  std::set<std::vector<std::uint64_t>> orders;
  for (auto const& key : {RandomKey{.seed = 1},
                          RandomKey{.seed = 2},
                          RandomKey{.seed = 1, .step = 1},
                          RandomKey{.seed = 1, .layer = 1},
                          RandomKey{.seed = 1, .micro_batch = 1},
                          RandomKey{.seed = 1, .stream = 1}}) {
    CHECK(orders.insert(all_of(RandomPermutation(50, key))).second);
  }
}

TEST_CASE("the order of a key has not changed, so trainings of older versions can go on") {
  constexpr RandomPermutation permutation(10, {.seed = 42, .step = 1});
  static_assert(permutation.size() == 10);
  CHECK(all_of(permutation) == std::vector<std::uint64_t>{2, 8, 4, 7, 6, 1, 9, 0, 5, 3});
}

TEST_CASE("over many keys, every number comes to every place equally often") {
  for (std::uint64_t const size : {2, 3, 5, 8, 13}) {
    constexpr std::size_t draws = 4000;
    std::vector<std::size_t> counts(static_cast<std::size_t>(size * size));
    for (std::size_t draw = 0; draw < draws; ++draw) {
      RandomPermutation const permutation(size, {.seed = draw});
      for (std::uint64_t i = 0; i < size; ++i) {
        ++counts[static_cast<std::size_t>(i * size + permutation(i))];
      }
    }
    auto const expected = static_cast<double>(draws) / static_cast<double>(size);
    for (auto const count : counts) {  // within five standard deviations
      CHECK(std::abs(static_cast<double>(count) - expected) < 5 * std::sqrt(expected));
    }
  }
}

TEST_CASE("neighbours of a large range are scattered") {
  constexpr std::uint64_t size = 20'000;
  RandomPermutation const permutation(size, {.seed = 5});
  double product = 0;
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    auto const centred = [&](std::uint64_t at) {
      return (static_cast<double>(permutation(at)) + 0.5) / static_cast<double>(size) - 0.5;
    };
    product += centred(i) * centred(i + 1);
  }
  auto const correlation = product / static_cast<double>(size) * 12;
  CHECK(std::abs(correlation) < 0.04);
}

}  // namespace permutation_test
