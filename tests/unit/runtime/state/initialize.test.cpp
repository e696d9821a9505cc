// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/state/initialize.hpp>

#include <roundpipe/core/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace initialize_test {

namespace {

using namespace roundpipe;

std::vector<float> values(Initial initial,
                          std::size_t count,
                          std::uint64_t seed = 1,
                          std::size_t block = 0,
                          std::size_t tensor = 0) {
  std::vector<float> result(count, 17.0F);
  initialize({{"", {}, DType::f32}, initial, DecayGroup::decayed, {}}, seed, block, tensor, result);
  return result;
}

}  // namespace

TEST_CASE("constants are constant") {
  CHECK(values(Initial::zeros(), 3) == std::vector<float>(3, 0.0F));
  CHECK(values(Initial::ones(), 3) == std::vector<float>(3, 1.0F));
  CHECK(values(Initial::normal(0), 3) == std::vector<float>(3, 0.0F));
}

TEST_CASE("normal values have mean 0 and the requested deviation") {
  std::size_t const count = 100'000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  for (auto const value : values(Initial::normal(0.02F), count)) {
    auto const z = static_cast<double>(value) / 0.02;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
  }
  auto const n = static_cast<double>(count);
  // Five standard errors of each moment.
  CHECK(std::abs(sum / n) < 5 * std::sqrt(1 / n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::abs(fourths / n - 3) < 5 * std::sqrt(96 / n));
}

TEST_CASE("normal values depend on the seed, the block and the tensor, and on nothing else") {
  auto const normal = Initial::normal(1);
  auto const some = values(normal, 10, 7, 3, 2);
  CHECK(some == values(normal, 10, 7, 3, 2));
  CHECK(some != values(normal, 10, 8, 3, 2));
  CHECK(some != values(normal, 10, 7 + (std::uint64_t{1} << 32), 3, 2));
  CHECK(some != values(normal, 10, 7, 2, 3));
  CHECK(some != values(normal, 10, 7, 3, 1));
  auto more = values(normal, 20, 7, 3, 2);
  more.resize(10);
  CHECK(some == more);
}

TEST_CASE("normal values are those of Box and Muller, by seed, block, tensor and index") {
  // Pipeline and oracle share the function: this is the formula once more.
  constexpr double pi = 3.14159265358979323846;
  std::size_t const first = 3;  // a part that begins between the two values of a block of words
  std::vector<float> part(6);
  initialize(
      {{"", {}, DType::f32}, Initial::normal(0.5F), DecayGroup::decayed, {}}, 9, 4, 2, part, first);
  for (std::size_t i = 0; i < part.size(); ++i) {
    auto const words = random_block(
        {.seed = 9, .layer = 4, .micro_batch = 0xFFFFFFFFU, .stream = 2}, (first + i) / 2);
    auto const at = 2 * ((first + i) % 2);
    auto const u = (words[at] + 1.0) / 4294967296.0;
    auto const v = words[at + 1] / 4294967296.0;
    CHECK(part[i] == doctest::Approx(0.5 * std::sqrt(-2 * std::log(u)) * std::cos(2 * pi * v)));
  }
}

TEST_CASE("a parameter without elements has no values") {
  for (auto const initial : {Initial::zeros(), Initial::ones(), Initial::normal(1)}) {
    CHECK(values(initial, 0).empty());
  }
}

TEST_CASE("no value is infinite") {
  for (auto const value : values(Initial::normal(1), 100'000, 5)) {
    REQUIRE(std::abs(value) < 8);
  }
}

}  // namespace initialize_test
