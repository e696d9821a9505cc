// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/gradient_accumulator.hpp>

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/id.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gradient_accumulator_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("the gradients of a shared block's uses are summed, and the update subtracts the sum") {
  HostParameters f({.type = DType::f32, .tied = true});
  auto const block = f.blocks.uses[0].block;
  REQUIRE(f.blocks.blocks[block.index()].uses.size() == 2);
  auto const [first, second] =
      std::pair{f.blocks.blocks[block.index()].uses[0], f.blocks.blocks[block.index()].uses[1]};
  auto const before = f.weights(block, 0);
  f.land(first, 2);
  f.land(second, 3);
  f.accumulator.accumulate(first, RoundId(0), true, 1);
  f.accumulator.accumulate(second, RoundId(0), false, 1);
  f.updater.update(block, 1, 1);
  auto const once = f.weights(block, 0);
  f.accumulator.accumulate(first, RoundId(0), true, 2);  // starts a new sum
  f.updater.update(block, 2, 1);
  auto const twice = f.weights(block, 0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(once[i] == before[i] - 5);
    CHECK(twice[i] == once[i] - 2);
  }
}

TEST_CASE("sums of bf16 are rounded at random: their mean is exact, and each addition draws anew") {
  HostParameters f({.copies = {.master_copies = 2, .state_type = StateType::declared},
                    .type = DType::bf16,
                    .tied = true});
  BlockUseId const use(0);
  auto const block = f.blocks.uses[0].block;
  auto const sums = [&](float first, float second, std::uint64_t iteration) {
    f.land(use, first);
    f.accumulator.accumulate(use, RoundId(0), true, iteration);
    f.land(use, second);
    f.accumulator.accumulate(use, RoundId(0), false, iteration);
    auto const sum = f.memory.gradient(block, 0, iteration);
    REQUIRE(sum.dtype == DType::bf16);
    std::vector<float> values(sum.size);
    widen(sum.bytes(), sum.dtype, values, false);
    return values;
  };
  for (auto const value : sums(2, 3, 1)) {
    CHECK(value == 5);  // a number of bf16
  }
  auto const some = sums(256, 1, 2);  // 256 and 258 are neighbours
  CHECK(std::ranges::all_of(some, [](float value) { return value == 256 || value == 258; }));
  CHECK(std::ranges::count(some, 256.0F) > 0);
  CHECK(std::ranges::count(some, 258.0F) > 0);
  CHECK(sums(256, 1, 2) == some);
  CHECK(sums(256, 1, 3) != some);
  auto const first_halves = sums(1, 0.5F / 256, 4);  // 1 or 1 + 1/128: a quarter goes up
  f.land(use, 0.5F / 256);
  f.accumulator.accumulate(use, RoundId(0), false, 4);
  auto const third = f.memory.gradient(block, 0, 4);
  std::vector<float> values(third.size);
  widen(third.bytes(), third.dtype, values, false);
  std::size_t up_twice = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    up_twice += first_halves[i] > 1 && values[i] > first_halves[i] ? 1 : 0;
  }
  CHECK(up_twice < static_cast<std::size_t>(
                       std::ranges::count_if(first_halves, [](float value) { return value > 1; })));
}

}  // namespace gradient_accumulator_test
