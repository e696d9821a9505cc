// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_norm.hpp>

#include <roundpipe/concepts/ops.hpp>
#include <support/nn_harness.hpp>
#include <support/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace host_norm_test {

using namespace roundpipe;
using test::OwnedTensor;
using test::read;
using test::relative_difference;

constexpr nn::RowExtents extents{.rows = 2, .width = 2};

TEST_CASE("a norm divides by the root of mean square plus epsilon") {
  OwnedTensor const x({2, 2}, {2, -2, 7, 1});  // mean squares of 4 and 25
  OwnedTensor const gain({2}, {3, 5});
  OwnedTensor const y({2, 2}, DType::f64);
  nn::detail::run_rms_norm<double>(extents, y, x, gain, 0);
  CHECK(relative_difference(read(y), {3, -5, 4.2, 1}) < 1e-14);
  nn::detail::run_rms_norm<double>(extents, y, x, gain, 96);  // roots of 100 and 121
  CHECK(relative_difference(read(y), {0.6, -1, 21.0 / 11, 5.0 / 11}) < 1e-14);
}

TEST_CASE("a norm's gradients have the values of a calculation by hand, and add to what is there") {
  OwnedTensor const x({2, 2}, {2, -2, 7, 1});
  OwnedTensor const gain({2}, {3, 5});
  OwnedTensor const dy({2, 2}, {1, 0, 1, 2});
  OwnedTensor const addend({2, 2}, {0, 0, 1, 1});
  OwnedTensor const dgain({2}, {10, 20});
  nn::detail::run_rms_norm_backward<double>(
      extents, dy, dgain, dy, x, gain, addend, 0);  // in place
  CHECK(relative_difference(read(dy), {0.75, 0.75, 0.732, 2.876}) < 1e-14);
  CHECK(relative_difference(read(dgain), {12.4, 20.4}) < 1e-14);
}

}  // namespace host_norm_test
