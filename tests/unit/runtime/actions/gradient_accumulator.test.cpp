// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/gradient_accumulator.hpp>

#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <utility>

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
  f.accumulator.accumulate(first, true, 1);
  f.accumulator.accumulate(second, false, 1);
  f.updater.update(block, 1, 1);
  auto const once = f.weights(block, 0);
  f.accumulator.accumulate(first, true, 2);  // starts a new sum
  f.updater.update(block, 2, 1);
  auto const twice = f.weights(block, 0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(once[i] == before[i] - 5);
    CHECK(twice[i] == once[i] - 2);
  }
}

}  // namespace gradient_accumulator_test
