// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/state/rounding_key.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

namespace rounding_key_test {

namespace {

using namespace roundpipe;
using Words = std::array<std::uint32_t, 4>;

/// What random numbers of a key begin with.
Words words_of(RandomKey const& key) {
  return random_block(key, 0);
}

}  // namespace

TEST_CASE("a key holds the seed, the step, the block and the tensor, each at its place") {
  // Trained weights depend on these places: pipeline and oracle share the function.
  CHECK(rounding_key(7, 11, BlockId(13), 17) ==
        RandomKey{.seed = 7, .step = 11, .layer = 13, .micro_batch = 4'294'967'294U, .stream = 17});
  CHECK(sum_rounding_key(7, 11, BlockId(13), 17, 19) ==
        RandomKey{.seed = 7, .step = 11, .layer = 13, .micro_batch = 2'147'483'667U, .stream = 17});
}

TEST_CASE("no step, block, tensor or addition rounds by the numbers of another") {
  std::set<Words> seen;
  std::size_t keys = 0;
  for (std::uint64_t const seed : {0, 1}) {
    for (std::uint64_t step = 0; step < 4; ++step) {
      for (std::size_t block = 0; block < 4; ++block) {
        for (std::size_t tensor = 0; tensor < 4; ++tensor) {
          seen.insert(words_of(rounding_key(seed, step, BlockId(block), tensor)));
          for (std::uint32_t addition = 1; addition < 4; ++addition) {
            seen.insert(words_of(sum_rounding_key(seed, step, BlockId(block), tensor, addition)));
          }
          keys += 4;
        }
      }
    }
  }
  CHECK(seen.size() == keys);
}

TEST_CASE("layers draw other numbers than updates and sums round with") {
  auto const update = rounding_key(1, 2, BlockId(3), 0);
  auto const sum = sum_rounding_key(1, 2, BlockId(3), 0, 1);
  for (std::uint32_t micro_batch = 0; micro_batch < 1000; ++micro_batch) {
    CHECK(update.micro_batch != micro_batch);
    CHECK(sum.micro_batch != micro_batch);
  }
}

}  // namespace rounding_key_test
