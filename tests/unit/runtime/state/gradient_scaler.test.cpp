// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/gradient_scaler.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace gradient_scaler_test {

using namespace roundpipe;
using roundpipe::test::error_of;

TEST_CASE("the factor removes the loss scale and clips the unscaled norm") {
  GradientScalerOptions const clips{.clip_norm = 2};
  CHECK(step_factor({}, 1, 0, 1).gradient == 1);
  CHECK(step_factor({}, 1, 0, 8).gradient == 0.125F);
  CHECK(step_factor(clips, 1, 16, 1).gradient == 0.5F);         // the norm is 4
  CHECK(step_factor(clips, 1, 16, 4).gradient == 0.25F);        // the norm is 1: not clipped
  CHECK(step_factor(clips, 1, 4096, 8).gradient == 0.25F / 8);  // the norm is 8
}

TEST_CASE("gradients that are not finite skip the step, or are an error that names it") {
  auto const infinity = std::numeric_limits<double>::infinity();
  CHECK(step_factor({.skips_overflows = true}, 1, infinity, 2).skips);
  CHECK_FALSE(step_factor({.skips_overflows = true}, 1, 1, 2).skips);
  auto const error = error_of([&] { return step_factor({.clip_norm = 1}, 9, infinity, 1); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().find("step 9") != std::string::npos);
}

TEST_CASE("the verdicts of the last steps are kept while the next step is measured") {
  ParameterBlocks blocks;
  blocks.blocks.resize(2);
  GradientScaler verdict(blocks, {.skips_overflows = true});
  verdict.add(BlockId(1), 1, std::numeric_limits<double>::infinity());
  verdict.add(BlockId(0), 1, 1);
  CHECK(verdict.has_overflowed(1));
  CHECK(verdict.factor(1, 1).skips);
  verdict.add(BlockId(1), 2, 1);
  verdict.add(BlockId(0), 2, 1);
  CHECK_FALSE(verdict.has_overflowed(2));
  CHECK(verdict.has_overflowed(1));
  CHECK_FALSE(verdict.factor(2, 1).skips);
}

TEST_CASE("the block whose gradient is not finite is told from the others") {
  ParameterBlocks blocks;
  blocks.blocks.resize(3);
  GradientScaler clips(blocks, {.clip_norm = 1});
  auto const refusal = [&](std::size_t block, std::uint64_t step) {
    return error_of([&] { clips.require_finite(BlockId(block), step); });
  };
  clips.add(BlockId(0), 4, 1);
  CHECK(refusal(0, 4).message() == "nothing was thrown");
  clips.add(BlockId(1), 4, std::numeric_limits<double>::quiet_NaN());
  CHECK(refusal(1, 4).code() == Errc::not_finite);
  CHECK(refusal(1, 4).message() == "the gradient's norm at step 4 is not finite");
  // What the failed step has left is of no concern to the next one.
  clips.add(BlockId(0), 4, 1);
  CHECK(refusal(0, 4).message() == "nothing was thrown");
  GradientScaler skips(blocks, {.clip_norm = 1, .skips_overflows = true});
  skips.add(BlockId(2), 1, std::numeric_limits<double>::infinity());
  CHECK_NOTHROW(skips.require_finite(BlockId(2), 1));
}

}  // namespace gradient_scaler_test
